"""Printed time stamps."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.clock import stamp_seconds


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ("2026-11-20 22:22:01", "2026-11-20 22:22:03,500", 2.5),
        ("2026/11/20 23:59:59", "2026/11/21 00:00:01", 2.0),
        ("11/20/2026 22:18:59", "11/20/2026 22:19:00", 1.0),
        ("11/20 22:20:08", "11/20 22:20:09", 1.0),
        ("2026-11-20T22:22:01.250Z", "2026-11-20T22:22:01.750Z", 0.5),
    ],
)
def test_differences(before: str, after: str, seconds: float) -> None:
    a, b = stamp_seconds(before), stamp_seconds(after)
    assert a is not None and b is not None
    assert b - a == pytest.approx(seconds)


def test_no_stamp() -> None:
    assert stamp_seconds("yesterday") is None


def test_a_log_without_arrival_times_has_its_rate_from_the_stamps() -> None:
    reader = LogReader()
    for i in range(20):
        reader.feed(f"2026-11-20 22:10:{2 * i:02} step {10 * i} loss 1.0\n".encode())
    summary = reader.summary()
    assert (summary.steps_per_s, summary.rate_source) == (5.0, "stamps")
    assert summary.step_times == ()
    assert all(point.time is None for point in summary.loss)
