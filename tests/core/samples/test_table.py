"""samples.csv as it is written, torn, edited, and as other monitors write theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.errors import GpudebugError
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.samples.table import Sample, SampleTable, joined, looks_like_samples, name_on, read_samples

SEED = "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n"


def read(text: str) -> SampleTable:
    return read_samples(text.splitlines(keepends=True), "samples.csv")


def elapsed(text: str) -> list[float]:
    return [row.elapsed for row in read(text).rows]


def test_our_own_rows_come_back() -> None:
    reading = DeviceReading(
        elapsed=1.204,
        gpu_util=15.5,
        mem_used_mb=812.25,
        gpu_index=1,
        gpu_uuid="GPU-1a2b",
        sm_clock_mhz=1410.0,
        throttle="sw_power_cap+hw_slowdown",
        new_samples=3,
        rss_mb=301.5,
        log_bytes=4096,
        foreign_procs=2,
        foreign_cpu=12.5,
        mem_total_mb=81920.0,
        power_w=249.5,
        energy_j=123456.78,
    )
    samples = read(HEADER + csv_row(reading))
    known = Sample(
        1.204, 15.5, 812.25, 1, "GPU-1a2b", 3, 301.5, 4096, 1410, "sw_power_cap+hw_slowdown", 2, 12.5
    )
    known = replace(known, mem_total_mb=81920, power_w=249.5, energy_j=123456.78)
    assert samples.rows == [known]
    assert samples.unreadable == 0


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**7),
            st.none() | st.integers(0, 10_000),
            st.integers(0, 7),
            st.none() | st.integers(0, 20),
        ),
        max_size=30,
    )
)
def test_any_rows_come_back(values: list[tuple[int, int | None, int, int | None]]) -> None:
    rows = [
        DeviceReading(
            elapsed=ms / 1000,
            gpu_util=None if util is None else util / 100,
            gpu_index=index,
            gpu_uuid=f"GPU-{index}",
            new_samples=new,
        )
        for ms, util, index, new in values
    ]
    samples = read(HEADER + "".join(map(csv_row, rows)))
    assert samples.unreadable == 0
    found = [(s.elapsed, s.gpu_util, s.gpu_index, s.gpu_uuid, s.new_samples) for s in samples.rows]
    assert found == [(r.elapsed, r.gpu_util, r.gpu_index, r.gpu_uuid, r.new_samples) for r in rows]


def test_an_empty_cell_is_unknown_and_not_zero() -> None:
    samples = read(HEADER + csv_row(DeviceReading(elapsed=1.0, gpu_index=0, gpu_uuid="MIG-1")))
    (row,) = samples.rows
    assert (row.gpu_util, row.mem_used_mb, row.new_samples, row.rss_mb, row.log_bytes) == (None,) * 5


@pytest.mark.parametrize("text", ["5 %", "[N/A]", "nan", "high"])
def test_what_another_monitor_writes_beside_the_utilisation_costs_no_row(text: str) -> None:
    (row,) = read(f"elapsed,gpu_util,mem_util,power_w\n0.2,15,{text},{text}\n").rows
    assert (row.gpu_util, row.mem_util, row.power_w) == (15, None, None)


@pytest.mark.parametrize(
    "last",
    ["0.4,2", "0.4,20,5,100,2000", "0.4", "0", ","],
    ids=["mid-cell", "whole-but-no-newline", "one-cell", "one-digit", "comma"],
)
def test_a_torn_last_line_is_dropped_and_counted(last: str) -> None:
    samples = read(SEED + "0.2,15,5,100,2000\n" + last)
    assert [r.gpu_util for r in samples.rows] == [15]
    assert samples.unreadable == 1


@pytest.mark.parametrize(
    "row",
    [
        "0.4,nan,5,100,2000",
        "0.4,inf,5,100,2000",
        "0.4,15,5,1e308,2000",
        "1e300,15,5,100,2000",
        "nan,15,5,100,2000",
        "1_0,15,5,100,2000",
        "0.4,1_5,5,100,2000",
        "0.4,١٥,5,100,2000",
        "0.4,15,5,100",
        "0.4,15,5,100,2000,7",
        "0.4,15\x00,5,100,2000",
        "0.4,0x10,5,100,2000",
        "0.4,-1,5,100,2000",
        "0.4,101,5,100,2000",
        "-0.4,15,5,100,2000",
        ",15,5,100,2000",
        f"0.4,{'1' * 2000},5,100,2000",
        "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb",
        "<<<<<<< HEAD",
    ],
)
def test_garbage_is_counted_and_what_stands_around_it_is_read(row: str) -> None:
    samples = read(SEED + "0.2,15,5,100,2000\n" + row + "\n0.6,16,5,100,2000\n")
    assert [r.gpu_util for r in samples.rows] == [15, 16]
    assert samples.unreadable == 1


@pytest.mark.parametrize("cell", ["nan", "NaN", "-nan", "[N/A]", ""])
def test_a_figure_that_is_no_number_is_unknown_and_leaves_the_row(cell: str) -> None:
    samples = read(
        f"elapsed,gpu_util,mem_used_mb,rss_mb,new_samples,log_bytes\n0.2,15,{cell},{cell},{cell},{cell}\n"
    )
    row = samples.rows[0]
    assert (row.gpu_util, row.mem_used_mb, row.rss_mb, row.log_bytes, samples.unreadable) == (
        15,
        None,
        None,
        None,
        0,
    )


@pytest.mark.parametrize("cell", ["1.5", "-1", "x", "1e400"])
def test_counts_are_whole_numbers(cell: str) -> None:
    text = f"elapsed,gpu_util,new_samples\n0.2,15,{cell}\n"
    assert read(text).unreadable == 1


def test_windows_line_ends_a_byte_order_mark_and_empty_lines() -> None:
    samples = read("\ufeff" + SEED.replace("\n", "\r\n") + "0.2,15,5,100,2000\r\n\r\n0.4,16,5,100,2000\r\n")
    assert [(r.elapsed, r.gpu_util, r.mem_used_mb) for r in samples.rows] == [(0.2, 15, 100), (0.4, 16, 100)]
    assert samples.unreadable == 0


def test_without_a_count_of_new_samples_every_row_is_new() -> None:
    (row,) = read(SEED + "0.2,15,5,100,2000\n").rows
    assert row == Sample(0.2, 15, 100, 0, "", 1, None, None, mem_util=5, mem_total_mb=2000)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "elapsed",
        "gpu_util,mem_util",
        "epoch,train_loss,valid_loss,time",
        "step,time,loss,gpu_util",
        "elapsed,cpu_util",
        "Loading checkpoint, elapsed 3 s, gpu_util 30",
        '{"elapsed": 1, "gpu_util": 3}',
        "elapsed;gpu_util",
        "timestamp,utilization.gpu [%]",
    ],
)
def test_what_is_no_samples_csv_is_refused_with_its_line(header: str) -> None:
    assert not looks_like_samples(header)
    with pytest.raises(GpudebugError) as caught:
        read(header + "\n0.1,2,3\n")
    assert (caught.value.file, caught.value.line) == ("samples.csv", 1)
    assert caught.value.next


def test_several_devices_and_the_times_of_the_log() -> None:
    text = "elapsed,gpu_util,gpu_index,gpu_uuid,log_bytes\n" + "".join(
        f"{t},{10 * g},{g},GPU-{g},{100 * t}\n" for t in (1, 2, 3) for g in (0, 1)
    )
    samples = read(text)
    assert samples.devices == [(0, "GPU-0"), (1, "GPU-1")]
    assert samples.log_times == [(1, 100), (2, 200), (3, 300)]


def test_nothing_is_nothing() -> None:
    samples = read(SEED)
    assert (samples.rows, samples.devices, samples.log_times, samples.unreadable) == ([], [], [], 0)


def table(uuid: str, **columns: float) -> SampleTable:
    rows = [
        DeviceReading(elapsed=t, gpu_util=50.0, gpu_index=0, gpu_uuid=uuid, **columns) for t in (0.2, 0.4)
    ]
    return read_samples([HEADER, *map(csv_row, rows), "torn"], "samples.csv")


def test_a_file_is_named_by_its_node() -> None:
    assert name_on("gpu-01.site", "samples.csv") == "samples.gpu-01.site.csv"


def test_devices_of_all_nodes_are_told_apart_by_uuid() -> None:
    found = joined(table("GPU-a"), [table("GPU-b"), table("GPU-c")])
    assert found.devices == [(0, "GPU-a"), (0, "GPU-b"), (0, "GPU-c")]
    assert len(found.rows) == 6
    # A torn row of another node is that device's trouble.
    assert found.unreadable == 1


def test_the_host_is_the_first_nodes_and_so_is_the_log() -> None:
    first = table("GPU-a", cpu_util=90.0, rss_mb=10.0, log_bytes=5)
    found = joined(first, [table("GPU-b", cpu_util=10.0, rss_mb=99.0, log_bytes=7, power_w=300.0)])
    other = found.by_device[0, "GPU-b"][0]
    assert (other.cpu_util, other.rss_mb, other.log_bytes) == (None, None, None)
    assert (other.gpu_util, other.power_w) == (50.0, 300.0)
    assert found.log_times == first.log_times


def test_a_gpu_that_two_nodes_see_is_one() -> None:
    first = table("GPU-a")
    assert joined(first, [table("GPU-a"), SampleTable()]) is first
