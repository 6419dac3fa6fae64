"""Timelines of devices: readings, gaps and peaks of samples.csv."""

from __future__ import annotations

from gpudebug.core.samples.table import read_samples
from gpudebug.core.samples.timeline import timelines

HEADER = "elapsed,gpu_util,mem_used_mb,gpu_index,gpu_uuid,new_samples\n"


def points(*rows: str, most: int = 100, interval: float | None = None) -> list[tuple[float, ...]]:
    found = timelines(read_samples([HEADER, *(f"{row}\n" for row in rows)], "x"), most, interval)
    return [p for device in found for p in device["points"]]


def test_each_device_has_its_own_line() -> None:
    rows = [f"{t / 5},{10 * d + t},100,{d},GPU-{d},1\n" for t in range(1, 4) for d in (0, 1)]
    found = timelines(read_samples([HEADER, *rows], "x"), 100)
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
