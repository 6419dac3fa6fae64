"""The newest readings of each device, however the rows arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.samples.live import TRACE_S, DeviceNow, Latest, timelines
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.samples.table import read_samples

HEAD = "elapsed,gpu_util,mem_used_mb,gpu_index,gpu_uuid,new_samples\n"


def points(*rows: str, most: int = 100, interval: float | None = None) -> list[tuple[float, ...]]:
    found = timelines(read_samples([HEAD, *(f"{row}\n" for row in rows)], "x"), most, interval)
    return [p for device in found for p in device["points"]]


def test_each_device_has_its_own_line() -> None:
    rows = [f"{t / 5},{10 * d + t},100,{d},GPU-{d},1\n" for t in range(1, 4) for d in (0, 1)]
    found = timelines(read_samples([HEAD, *rows], "x"), 100)
    assert [(d["index"], d["uuid"]) for d in found] == [(0, "GPU-0"), (1, "GPU-1")]
    assert found[1]["points"] == [(0.2, 11.0, 100.0), (0.4, 12.0, 100.0), (0.6, 13.0, 100.0)]


def test_a_tick_without_a_new_reading_is_no_gap() -> None:
    assert points("0.2,10,1,0,G,1", "0.4,10,1,0,G,0", "0.6,30,1,0,G,1") == [(0.2, 10, 1), (0.6, 30, 1)]


def test_a_device_that_says_nothing_for_long_leaves_a_gap() -> None:
    rows = ["0.2,10,1,0,G,1", *(f"{t / 5},10,1,0,G,0" for t in range(2, 20)), "4.0,30,1,0,G,1"]
    found = points(*rows)
    assert [value for _, value, _ in found if value is not None] == [10, 30]
    assert next(t for t, value, _ in found if value is None) == 2.4


def test_where_nobody_sampled_is_a_gap() -> None:
    assert points("0,10,1,0,G,1", "9,30,1,0,G,1") == [(0, 10, 1), (4.5, None, None), (9, 30, 1)]
    assert points("5,10,1,0,G,1", "10,30,1,0,G,1", interval=5) == [(5, 10, 1), (10, 30, 1)]


def test_a_reading_that_the_device_lacks_is_a_gap() -> None:
    assert points("0.2,10,1,0,G,1", "0.4,,1,0,G,1")[1] == (0.4, None, 1)


def test_a_peak_of_a_long_run_stays() -> None:
    rows = [f"{t / 5},{99 if t == 777 else 5},{7000 if t == 333 else 50},0,G,1" for t in range(1, 5000)]
    found = points(*rows, most=200)
    assert len(found) <= 200
    assert max(value or 0 for _, value, _ in found) == 99
    assert max(used or 0 for _, _, used in found) == 7000


def reading(at: float, util: float | None, index: int = 0, **cells: object) -> str:
    facts = {"gpu_uuid": f"GPU-{index}", "new_samples": 1, **cells}
    return csv_row(DeviceReading(elapsed=at, gpu_util=util, gpu_index=index, **facts))  # type: ignore[arg-type]


def after(*rows: str) -> Latest:
    latest = Latest()
    latest.feed("".join([HEADER, *rows]).encode())
    return latest


def test_nothing_is_known_of_nothing() -> None:
    latest = after()
    assert (latest.elapsed, latest.devices, latest.host.cpu_util) == (None, [], None)


def test_each_device_has_its_own() -> None:
    facts = {"mem_used_mb": 10.0, "power_w": 200.5, "sm_clock_mhz": 1410.0, "temperature_c": 61.0}
    latest = after(
        reading(1.0, 90, 1, throttle="sw_power_cap", foreign_procs=2),
        reading(1.0, 20, 0, **facts, cpu_util=150.0, rss_mb=900.0, throttle="hw_thermal"),
        reading(1.2, 40, 0, **facts),
    )
    first, second = latest.devices
    assert (first.index, first.gpu_util, first.power_w, first.temperature_c) == (0, 30.0, 200.5, 61.0)
    assert (second.uuid, second.gpu_util, second.throttle, second.foreign_procs) == (
        "GPU-1",
        90.0,
        "sw_power_cap",
        2,
    )
    assert (first.throttle, second.power_w, first.mem_clock_mhz) == (None, None, None)
    assert (latest.host.cpu_util, latest.host.rss_mb, latest.elapsed) == (150.0, 900.0, 1.2)


@pytest.mark.parametrize(
    ("said", "throttle"),
    [("none", None), ("gpu_idle", None), ("gpu_idle+sw_power_cap+other", "sw_power_cap+other")],
)
def test_clocks_that_nothing_holds_down_are_not_throttled(said: str, throttle: str | None) -> None:
    (device,) = after(reading(1.0, 90, 0, throttle=said)).devices
    assert device.throttle == throttle


def test_utilisation_now_is_of_the_last_moments_and_else_what_the_driver_repeats() -> None:
    latest = after(reading(1.0, 0), reading(7.0, 50), reading(8.0, 70))
    assert latest.devices[0].gpu_util == 60.0
    latest.feed(reading(20.0, 70, new_samples=0).encode())
    assert latest.devices[0].gpu_util == 70.0
    latest.feed(reading(21.0, None, new_samples=0).encode())
    assert latest.devices[0].gpu_util is None


def test_the_trace_has_each_second_of_the_last_minutes() -> None:
    latest = after(reading(0.2, 10), reading(0.8, 30), reading(2.5, 50))
    assert latest.devices[0].trace == (20.0, None, 50.0)
    latest.feed("".join(reading(float(s), s % 100) for s in range(3, 1000)).encode())
    trace = latest.devices[0].trace
    assert len(trace) == TRACE_S and trace[-1] == 99.0


def test_what_is_no_number_is_not_known() -> None:
    row = "1.0,nan,,inf,,0,GPU-0,-inf,,,,,1,,,,,,,,\n"
    latest = after(row, "nan,5,,,,0,GPU-0,,,,,,1,,,,,,,,\n", "x\n", "1,2,3\n", "\xff\n")
    assert latest.devices == [DeviceNow(0, "GPU-0")]


ROWS = "".join(reading(n / 5, n % 100, n % 2) for n in range(40)).encode()


@given(st.lists(st.integers(0, len(ROWS)), max_size=8))
def test_however_it_arrives(cuts: list[int]) -> None:
    latest = Latest()
    for begin, end in pairwise([0, *sorted(cuts), len(ROWS)]):
        latest.feed(ROWS[begin:end])
    whole = Latest()
    whole.feed(ROWS)
    assert latest.devices == whole.devices


@pytest.mark.parametrize("cut", [1, 10, 20])
def test_a_row_that_was_cut_counts_for_nothing(cut: int) -> None:
    latest = after(reading(1.0, 10), "2.0,20,")
    latest.feed((reading(3.0, 99)[cut:] + reading(4.0, 70)).encode(), torn=True)
    assert latest.devices[0].gpu_util == 70.0 and latest.devices[0].trace == (10.0, None, None, 70.0)
