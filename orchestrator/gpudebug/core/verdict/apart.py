"""Two groups of runs without a trial's thresholds: how far they are apart, and whether two figures of one gain
contradict each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates import Criteria, TrialCase, TrialSetting, measure
from gpudebug.core.verdict.machine import machine_apart
from gpudebug.core.verdict.others import mean_share

_SHARES_APART = 5.0
"""Points by which what others took differs, if it is named."""


def compared(
    metric: Metric,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
    devices: str | None = None,
) -> TrialCase:
    """`after` against `before`, as a trial would be measured. `devices` is the campaign's `criteria.devices`."""
    criteria = Criteria(
        success=0.0,
        failure=0.0,
        loss="any",
        throughput="any",
        max_runs=1,
        metric=metric.name,
        direction="lower" if metric.lower else "higher",
        devices=devices,
    )
    return measure(TrialCase(criteria, setting, tuple(before), tuple(after)))


def contradict(metric: Metric, one: Estimate, other: Estimate) -> bool:
    """Whether two independent figures of one gain are further apart than their intervals let them be.

    Their difference has the root of the sum of squares of both half-widths as its own half-width. Without
    bounds nothing contradicts.
    """
    half, half_of_other = _half_width(metric, one), _half_width(metric, other)
    if half is None or half_of_other is None:
        return False
    return abs(metric.threshold(one.value) - metric.threshold(other.value)) > math.hypot(half, half_of_other)


def _half_width(metric: Metric, estimate: Estimate) -> float | None:
    if estimate.low is None or estimate.high is None or not (metric.points or estimate.low > 0):
        return None
    return (metric.threshold(estimate.high) - metric.threshold(estimate.low)) / 2


def worse(metric: Metric, now: Estimate, then: Estimate) -> bool:
    """Whether the gain is smaller now, beyond what both intervals leave open."""
    return now.value < then.value and contradict(metric, now, then)


def unchanged(metric: Metric, estimate: Estimate) -> bool:
    """Whether an interval holds no difference: 0 points, or a ratio of 1."""
    if estimate.low is None or estimate.high is None:
        return True
    return estimate.low <= (0.0 if metric.points else 1.0) <= estimate.high


def otherwise(then: Sequence[Evidence], now: Sequence[Evidence]) -> list[str]:
    """What was otherwise around runs of the same code, a phrase each: clocks, throttling, quota, others."""
    found = list(machine_apart(then, now))
    before, after = mean_share(then), mean_share(now)
    if before is not None and after is not None and abs(before - after) > _SHARES_APART:
        found.append(f"others kept the runs from {before:.1f}% of their CPU time then, {after:.1f}% now")
    return found
