"""The summary's defaults say unknown."""

from __future__ import annotations

import pytest

from gpudebug.core.records import Trend
from gpudebug.core.trainlog.summary import LogSummary


def test_nothing_is_known_at_first() -> None:
    summary = LogSummary()
    assert summary.trend is Trend.UNKNOWN
    assert (summary.points, summary.loss, summary.step_times, summary.extra) == (0, (), (), {})
    unknown = (
        "framework",
        "first",
        "last",
        "steps",
        "steps_per_s",
        "data_s",
        "update_s",
        "failure",
        "rate_source",
    )
    assert all(getattr(summary, name) is None for name in unknown)


def test_it_is_frozen() -> None:
    with pytest.raises(AttributeError):
        LogSummary().steps = 3  # type: ignore[misc]
