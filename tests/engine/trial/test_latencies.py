"""What a campaign of latencies is told."""

from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.records import LatencyEvidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.trial.latencies import more_requests, too_few

P50 = Metric("latency_p50", lower=True)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((100,), "1 run printed 100 latencies, 300 are needed; send 3.0 times as many requests a run, or"),
        ((100, 50), "2 runs printed 150 latencies, 300 are needed; send 2.0 times"),
        ((300,), None),
        ((None,), None),
    ],
)
def test_a_baseline_that_is_short_says_of_what(counts: tuple[int | None, ...], says: str | None) -> None:
    runs = [run(latency=LatencyEvidence(count=count)) for count in counts]
    found = too_few(P50, runs)
    assert found is None if says is None else (found or "").startswith(says)


def test_without_any_it_says_what_to_print() -> None:
    assert more_requests(P50, [run()]) == "print each latency with its unit, at least 300 over the runs"


def test_another_metric_needs_a_window() -> None:
    assert more_requests(Metric(), [run()]) is None
