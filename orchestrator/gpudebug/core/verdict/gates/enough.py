"""Whether enough of the metric was seen: seconds of steady window, or latencies if those are judged."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import Evidence
from gpudebug.core.samples.window import MIN_RUN_WINDOW_S, is_short
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates.setting import Criteria
from gpudebug.core.words import counted

LATENCIES = 300
"""This many printed latencies, summed over a side's runs, are evidence without any window: the median of 300
independent ones is known to 3 % of ranks. The interval says if warm-up and bursts leave fewer in effect."""

POOLED_RUNS = 3
"""Fewer runs whose windows are too short by themselves do not show how much they differ."""


def metric_of(criteria: Criteria) -> Metric:
    return Metric(criteria.metric, lower=criteria.direction == "lower")


def window_total(runs: Sequence[Evidence]) -> float:
    """Seconds of steady window over the runs that have one."""
    return math.fsum(e.window.duration_s for e in runs if e.window)


def latency_total(metric: Metric, runs: Sequence[Evidence]) -> int:
    """Latencies over the runs, if the metric is of latencies; else 0."""
    return sum(metric.observed(e) for e in runs)


def needed_window(criteria: Criteria, runs: Sequence[Evidence]) -> float:
    """Seconds of steady window that runs like these need together."""
    short = any(is_short(e.window) for e in runs)
    return max(criteria.min_window, MIN_RUN_WINDOW_S) if short else criteria.min_window


def share_seen(criteria: Criteria, runs: Sequence[Evidence]) -> float:
    """How much of what a verdict needs these runs show, by window or by latencies; 1 is enough."""
    needed = needed_window(criteria, runs)
    by_window = window_total(runs) / needed if needed > 0 else 1.0
    if any(is_short(e.window) for e in runs):
        by_window = min(by_window, len(runs) / POOLED_RUNS)
    return max(by_window, latency_total(metric_of(criteria), runs) / LATENCIES)


def short_window(criteria: Criteria, before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """What is missing in the baseline or in the trial to what a verdict needs; None if nothing is."""
    for part, runs in (("baseline", before), ("trial", after)):
        if share_seen(criteria, runs) < 1:
            return _missing(criteria, part, runs)
    return None


def _missing(criteria: Criteria, part: str, runs: Sequence[Evidence]) -> str:
    total = window_total(runs)
    count = counted(len(runs), "run")
    needed = needed_window(criteria, runs)
    missing = needed - total
    if missing <= 0:
        return f"the {part}'s windows are too short to count alone: {POOLED_RUNS - len(runs)} more are needed"
    wanted = f"min_window ({needed:g} s)" if needed == criteria.min_window else f"{needed:g} s"
    seen = latency_total(metric_of(criteria), runs)
    if seen:
        return (
            f"the {part}'s {count} printed {seen} latencies, {LATENCIES - seen} short of {LATENCIES}, and "
            f"their windows are {missing:.1f} s short of {wanted}"
        )
    text = f"the {part}'s windows sum up to {total:.1f} s over {count}"
    return f"{text}, {missing:.1f} s short of {wanted}"
