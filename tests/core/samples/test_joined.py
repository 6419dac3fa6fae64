"""The samples of several nodes in one table."""

from __future__ import annotations

from gpudebug.core.samples.joined import joined, name_on
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.samples.table import SampleTable, read_samples


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
