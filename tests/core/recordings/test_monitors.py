"""Rows of `nvidia-smi`, `dcgmi dmon` and other monitors."""

from __future__ import annotations

import pytest
from tests.support import monitors

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.columns import CSV, DCGMI, DMON, NVIDIA_SMI, PMON
from gpudebug.core.recordings.monitors import MonitorRows, read_monitor, recognised
from gpudebug.core.samples.row import HEADER


def read(text: str) -> MonitorRows:
    return read_monitor(text.splitlines(keepends=True), "f.csv")


RECORDINGS = {
    "a query": (monitors.query(5), NVIDIA_SMI),
    "one with a BOM": ("\ufeff" + monitors.query(5), NVIDIA_SMI),
    "one without its header": (monitors.query(5, header=False), NVIDIA_SMI),
    "one without units": (monitors.query(5, units=False), NVIDIA_SMI),
    "dmon": (monitors.dmon(5), DMON),
    "dmon as CSV": (monitors.dmon(5, csv=True), DMON),
    "dmon with its times": (monitors.dmon(5, dated=True), DMON),
    "dcgmi": (monitors.dcgmi(5), DCGMI),
    "an older dcgmi": ("  # Entity  GRACT  TENSO\n      Id\n   GPU 0  0.5  0.1\n", DCGMI),
    "another monitor": ("time_s,gpu_util_percent\n0,40\n", CSV),
}


@pytest.mark.parametrize(("text", "source"), RECORDINGS.values(), ids=RECORDINGS)
def test_recordings_are_recognised(text: str, source: str) -> None:
    assert recognised(text) == source
    assert recognised(text[:200]) == source


@pytest.mark.parametrize(
    "text", ["", "# gpu run of today\nstep 1\n", "step 1 loss 2\n", HEADER, "step,loss,gpu_util\n1,2,3\n"]
)
def test_what_is_none_is_not(text: str) -> None:
    assert recognised(text) is None


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("field", ["index", "uuid", "pci.bus_id", "serial"])
def test_any_identity_tells_the_gpus_apart(field: str, units: bool) -> None:
    fields = ("timestamp", field, "utilization.gpu", "power.draw", "memory.used", "clocks.sm")
    (part,) = read(monitors.query(3, 2, fields, units=units)).parts
    assert len(set(part.keys)) == 2
    first, second = part.readings[:2]
    assert (first.gpu_util, first.power_w, first.mem_used_mb, first.sm_clock_mhz) == (20, 150, 20000, 1980)
    assert second.gpu_util == 90
    assert part.times[2] - part.times[0] == pytest.approx(1)


@pytest.mark.parametrize("csv", [True, False])
def test_dmon(csv: bool) -> None:
    found = read(monitors.dmon(30, dated=True, csv=csv))
    (part,) = found.parts
    assert (len(part.readings), found.unreadable, found.notes) == (60, 0, [])
    assert part.times[-1] - part.times[0] == 29
    reading = part.readings[1]
    assert (reading.gpu_index, reading.gpu_util, reading.power_w, reading.sm_clock_mhz) == (1, 90, 500, 1980)


def test_without_times_a_tick_is_a_second_and_a_note_says_so() -> None:
    for text in (monitors.dmon(30), monitors.dcgmi(30)):
        found = read(text)
        assert found.parts[0].times[-1] - found.parts[0].times[0] == 29
        assert "one second a tick is assumed" in found.notes[0]


def test_processes_are_no_gpus() -> None:
    text = "# gpu        pid  type    sm   mem   command\n# Idx          #   C/G     %     %   name\n"
    assert recognised(text) == PMON
    with pytest.raises(GpudebugError, match="nvidia-smi pmon: of processes, not of GPUs"):
        read(text + "    0      14835     C    45    15   python\n")


def test_a_header_within_a_tick_does_not_end_it() -> None:
    (part,) = read(monitors.dmon(30, 8, repeat=20)).parts
    assert part.times[-1] - part.times[0] == 29


def test_a_time_of_day_goes_on_over_midnight() -> None:
    rows = "".join(f"{t}     0    100    50\n" for t in ("23:59:58", "23:59:59", "00:00:00", "00:00:01"))
    (part,) = read("#Time        gpu    pwr    sm\n#HH:MM:SS    Idx      W     %\n" + rows).parts
    assert [t - part.times[0] for t in part.times] == [0, 1, 2, 3]


def test_dcgmi_names_what_it_leaves_out() -> None:
    found = read(monitors.dcgmi(10, mig=True))
    assert found.notes[0].startswith("its rows have no time")
    assert found.notes[1] == "left out: 20 rows of GPU-I"
    assert found.parts[0].readings[0].sm_clock_mhz is None
    assert found.unreadable == 0


def test_dcgmi_without_its_utilisation_has_that_of_the_graphics_engine() -> None:
    found = read("#Entity   GRACT   DRAMA\nID\nGPU 0     0.457   0.1\nGPU 0     N/A   0.1\n")
    assert [r.gpu_util for r in found.parts[0].readings] == [pytest.approx(45.7), None]
    assert any("GRACT" in note for note in found.notes)


def test_rows_that_cannot_be_read_are_counted_and_named() -> None:
    text = monitors.query(5, 1) + "Unable to determine the device handle\n2025/07/27 01:49:00.000, 0, 50"
    found = read(text)
    assert found.unreadable == 2
    assert found.notes == ["at line 7 a row has 1 cells where the header names 5", "2 rows could not be read"]


def test_columns_that_change_in_the_middle_begin_another_part() -> None:
    later = monitors.query(5, 1, ("timestamp", "index", "power.draw", "utilization.gpu"), start=60)
    found = read(monitors.query(5, 1) + later)
    assert [len(p.readings) for p in found.parts] == [5, 5]
    assert {r.power_w for p in found.parts for r in p.readings} == {150}
    assert "the columns change at line 7" in found.notes[0]


def test_columns_that_change_without_a_header_are_not_mixed() -> None:
    swapped = monitors.query(
        5, 1, ("timestamp", "index", "power.draw", "utilization.gpu", "memory.used"), header=False, start=60
    )
    found = read(monitors.query(5, 1) + swapped)
    assert (len(found.parts[0].readings), found.unreadable) == (5, 5)
    more = monitors.query(
        5,
        1,
        ("timestamp", "index", "utilization.gpu", "power.draw", "memory.used", "clocks.sm"),
        header=False,
    )
    found = read(monitors.query(5, 1) + more)
    assert found.notes[0] == "at line 7 a row has 6 cells where the header names 5"


def test_a_query_without_its_time_is_refused() -> None:
    with pytest.raises(GpudebugError, match="has no time of its rows") as told:
        read(monitors.query(5, 1, ("index", "utilization.gpu")))
    assert "timestamp" in str(told.value.next)


def test_bare_numbers_without_a_header_are_refused() -> None:
    with pytest.raises(GpudebugError, match="no header and no units") as told:
        read(monitors.query(5, header=False, units=False))
    assert "--query-gpu" in str(told.value.next)


def test_an_impossible_utilisation_is_not_one() -> None:
    found = read("time_s,gpu_util\n0,50\n1,150\n2,nan\n3,50\n")
    assert [r.gpu_util for r in found.parts[0].readings] == [50, None, 50]
    assert found.unreadable == 1


def test_times_since_1970_in_any_unit() -> None:
    for unit in (1, 1e3, 1e6, 1e9):
        found = read(f"timestamp,gpu_util\n{1.76e9 * unit:.0f},50\n{(1.76e9 + 2) * unit:.0f},50\n")
        assert found.parts[0].times[1] - found.parts[0].times[0] == pytest.approx(2)


def test_an_entity_with_a_number_that_no_gpu_has_is_no_row() -> None:
    found = read("#Entity   GPUTL  POWER\nGPU 0  50  100\nGPU " + "1" * 5000 + "  50  100\n")
    assert (len(found.parts[0].times), found.unreadable) == (1, 1)


def test_one_row_without_its_end_is_refused() -> None:
    row = "2024/01/01 00:00:00.000, 50 %, 100.00 W"
    assert recognised(row) == NVIDIA_SMI
    with pytest.raises(GpudebugError, match="has no header and no whole row") as told:
        read(row)
    assert "record without noheader" in str(told.value.next)
