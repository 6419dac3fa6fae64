"""Readings become CSV rows and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.samples.row import COLUMNS, HEADER, DeviceReading, cell, csv_row, parse_row

CONTRACT = (
    "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb,gpu_index,gpu_uuid,power_w,sm_clock_mhz,mem_clock_mhz,"
    "temperature_c,throttle,new_samples,cpu_util,rss_mb,read_mb_s,write_mb_s,procs,log_bytes"
)
ADDED = "foreign_procs,foreign_cpu"
WAITING = "cpu_wait,cpu_throttled,cpu_stolen,foreign_demand"
ENERGY = "energy_j"

figures = st.one_of(st.none(), st.floats(0, 1e9, allow_nan=False))
counts = st.one_of(st.none(), st.integers(0, 2**40))
WHOLE = ("gpu_index", "new_samples", "procs", "log_bytes", "foreign_procs")
readings = st.builds(
    DeviceReading,
    elapsed=st.floats(0, 1e6),
    gpu_uuid=st.sampled_from(["GPU-1", "CPU", "MIG-1"]),
    throttle=st.sampled_from([None, "none", "sw_thermal+hw_thermal"]),
    **dict.fromkeys(WHOLE, counts),
    **{name: figures for name in COLUMNS if name not in {"elapsed", "gpu_uuid", "throttle", *WHOLE}},
)


def test_the_columns_are_the_documented_ones() -> None:
    assert f"{CONTRACT},{ADDED},{WAITING},{ENERGY}\n" == HEADER


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0, "0"),
        (-0.001, "0"),
        (15.0, "15"),
        (14.333333, "14.33"),
        (100.0, "100"),
        (1e12, "1000000000000"),
        (1e-9, "0"),
        (7, "7"),
        ("sw_thermal", "sw_thermal"),
    ],
)
def test_a_cell(value: float | int | str | None, text: str) -> None:
    assert cell(value) == text


def test_unknown_is_empty_and_zero_is_not() -> None:
    row = csv_row(DeviceReading(elapsed=0.2, gpu_util=None, mem_util=0.0, gpu_index=0))
    assert row == "0.2,,0,,,0,,,,,,,,,,,,,,,,,,,,\n"


@given(readings)
def test_what_was_written_is_written_again_as_it_was(reading: DeviceReading) -> None:
    row = csv_row(reading)
    again = parse_row(row)
    assert again is not None
    assert csv_row(again) == row
    assert [value is None for value in again] == [value is None for value in reading]


@pytest.mark.parametrize("lacking", [ENERGY, f"{WAITING},{ENERGY}", f"{ADDED},{WAITING},{ENERGY}"])
@given(reading=readings)
def test_a_row_of_an_earlier_version_lacks_the_last_columns(lacking: str, reading: DeviceReading) -> None:
    names = lacking.split(",")
    cells = csv_row(reading).rstrip("\n").split(",")
    again = parse_row(",".join(cells[: -len(names)]) + "\n")
    assert again == parse_row(csv_row(reading._replace(**dict.fromkeys(names))))


@given(readings)
def test_a_row_is_one_line_of_plain_numbers(reading: DeviceReading) -> None:
    row = csv_row(reading)
    assert row.count("\n") == 1
    assert row.count(",") == len(COLUMNS) - 1
    assert re.fullmatch(r"[\w.+,-]*\n", row)
    assert "e+" not in row


@pytest.mark.parametrize(
    "line", ["", HEADER, "0.2,15", "0.2,x" + "," * 17, csv_row(DeviceReading(elapsed=1.0))[:-4]]
)
def test_a_line_that_is_no_whole_row_is_none(line: str) -> None:
    assert parse_row(line) is None
