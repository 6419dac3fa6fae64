"""What other monitors call our columns, and what their cells say."""

from __future__ import annotations

import pytest
from tests.support import monitors

from gpudebug.core.recordings.columns import (
    CSV,
    DCGMI,
    DMON,
    NVIDIA_SMI,
    columns_of,
    dmon_columns,
    looks_headerless,
    moment,
    number,
    query_columns,
    throttle,
    whole,
)


def test_the_header_of_a_query() -> None:
    names = "timestamp, index, uuid, utilization.gpu [%], power.draw [W], memory.used [MiB]"
    found = query_columns([*names.split(", "), "clocks.current.sm [MHz]"])
    assert found is not None
    assert (found.source, found.width, found.identity) == (NVIDIA_SMI, 7, True)
    assert [found.at[c] for c in ("elapsed", "gpu_index", "gpu_uuid", "gpu_util", "power_w")] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert found.units["mem_used_mb"] == "MiB"
    other = query_columns(["time_s", "gpu_util_percent"])
    assert other is not None
    assert (other.source, other.identity) == (CSV, False)


@pytest.mark.parametrize(
    "header",
    [
        ["timestamp", "power.draw [W]"],
        ["step", "loss", "utilization.gpu [%]"],
        ["utilization.gpu [%]"],
        # What only looks alike.
        ["timestamp", "utilization.encoder [%]", "fan.speed [%]", "power.limit [W]"],
    ],
)
def test_what_has_no_utilisation_is_no_recording(header: list[str]) -> None:
    assert query_columns(header) is None


def test_power_is_the_average_if_only_that_was_asked_for() -> None:
    found = query_columns(["timestamp", "utilization.gpu [%]", "power.draw.average [W]"])
    assert found is not None
    assert found.at["power_w"] == 2


def test_headers_of_dmon_and_dcgmi() -> None:
    dmon = dmon_columns(["gpu", "pwr", "gtemp", "mtemp", "sm", "mem", "enc", "dec", "mclk", "pclk"])
    assert dmon is not None
    assert (dmon.source, dmon.at["gpu_util"], dmon.at["sm_clock_mhz"]) == (DMON, 4, 9)
    dcgmi = dmon_columns(["Entity", "GPUTL", "POWER"])
    assert dcgmi is not None
    assert (dcgmi.source, dcgmi.identity) == (DCGMI, True)
    assert dmon_columns(["Run", "started", "with", "8", "gpu"]) is None


@pytest.mark.parametrize(
    ("cell", "column", "value"),
    [
        ("45 %", "gpu_util", 45),
        ("45", "gpu_util", 45),
        (' "530.12 W"', "power_w", 530.12),
        ("1024 MiB", "mem_used_mb", 1024),
        ("2 GiB", "mem_used_mb", 2048),
        ("[N/A]", "power_w", None),
        ("[Not Supported]", "power_w", None),
        ("[GPU requires reset]", "gpu_util", None),
        ("ERR!", "power_w", None),
        ("-", "temperature_c", None),
        ("", "power_w", None),
    ],
)
def test_cells(cell: str, column: str, value: float | None) -> None:
    assert number(cell, column) == value


@pytest.mark.parametrize(
    ("cell", "column"), [("45 %", "power_w"), ("530 W", "gpu_util"), ("x", ""), ("inf", ""), ("1_0", "")]
)
def test_cells_of_other_columns_are_none(cell: str, column: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        number(cell, column)


def test_the_unit_of_the_header_counts_for_a_cell_without() -> None:
    assert number("2", "mem_used_mb", "GiB") == 2048


def test_masks_of_throttling() -> None:
    assert throttle("0x0000000000000004") == "sw_power_cap"
    assert throttle("0x0000000000000048") == "hw_slowdown+hw_thermal"
    assert throttle("0x0000000000000000") == "none"
    assert throttle("0x0000000000001001") == "gpu_idle+other"
    assert throttle("[N/A]") is None
    assert throttle("Active") == "Active"


def test_indices_and_moments() -> None:
    assert whole("3") == 3
    with pytest.raises(ValueError, match=r"1\.5"):
        whole("1.5")
    assert moment("2025/07/27 01:48:28.417") == moment("2025-07-27T01:48:28.417Z")
    assert moment("12.5") == 12.5
    assert moment("yesterday") is None
    assert moment("2025/99/27 01:48:28") is None


def lines(*fields: str, units: bool = True, gpus: int = 2) -> list[str]:
    return monitors.query(10, gpus, fields, header=False, units=units).splitlines()


def test_units_and_shapes_name_the_columns() -> None:
    rows = lines("timestamp", "name", "uuid", "power.draw", "utilization.gpu", "memory.used", "index")
    assert looks_headerless(rows)
    found, note = columns_of(rows)
    assert found is not None
    names = ("elapsed", "gpu_uuid", "power_w", "gpu_util", "mem_used_mb", "gpu_index")
    assert {c: found.at[c] for c in names} == dict(zip(names, (0, 2, 3, 4, 5, 6), strict=True))
    assert "gpu_util from column 5" in note


def test_two_of_a_kind_are_not_guessed() -> None:
    rows = [f"2025/07/27 01:48:{s:02}.000, 0, 90 %, 40 %" for s in range(10)]
    assert looks_headerless(rows)
    assert columns_of(rows) == (None, "has no header and 2 columns in %: which column is utilization.gpu?")
    watts = [f"{row.rsplit(',', 1)[0]}, 300.00 W, 700.00 W" for row in rows]
    found, _ = columns_of(watts)
    assert found is not None
    assert "power_w" not in found.at


def test_without_units_nothing_is_known() -> None:
    rows = lines("timestamp", "index", "utilization.gpu", "memory.used", units=False)
    assert looks_headerless(rows)
    assert columns_of(rows)[1] == "has no header and no units: which column is utilization.gpu?"


def test_without_a_whole_row_nothing_is_known() -> None:
    assert columns_of([]) == (None, "has no header and no whole row")
    assert columns_of(["killed by signal 9\n"]) == (None, "has no header and no whole row")


def test_a_number_that_does_not_count_the_gpus_is_no_index() -> None:
    found, _ = columns_of(lines("timestamp", "index", "utilization.gpu", gpus=1))
    assert found is not None
    assert "gpu_index" not in found.at


def test_logs_do_not_look_so() -> None:
    for log in (
        ["2024-01-16 14:44:17,095 loss 0.5", "2024-01-16 14:44:18,095 loss 0.4"],
        ["1, 0.5, 0.25", "2, 0.4, 0.25"],
        ["epoch 1, 90 %", "epoch 2, 91 %"],
        ["step,loss", "1,0.5"],
        [],
    ):
        assert not looks_headerless(log)
