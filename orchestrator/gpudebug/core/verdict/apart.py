"""Two groups of runs without a trial's thresholds: how far apart they are, and whether two figures agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates import Criteria, TrialCase, TrialSetting, measure
from gpudebug.core.verdict.machine import machine_apart
from gpudebug.core.verdict.others import mean_share

_NAMED_FROM = 5.0
"""Points by which two shares of time differ that are named."""
_HELD = "a CPU quota held back {} of a core"


def compared(
    metric: Metric,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
    devices: str | None = None,
) -> TrialCase:
    """Measure `after` against `before` as a trial. `devices` is the campaign's `criteria.devices`."""
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
    """Tell whether two independent figures of one gain are further apart than their intervals let them be.

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
    """Tell whether the gain is smaller now, beyond what both intervals leave open."""
    return now.value < then.value and contradict(metric, now, then)


def unchanged(metric: Metric, estimate: Estimate) -> bool:
    """Tell whether an interval holds no difference: 0 points, or a ratio of 1."""
    if estimate.low is None or estimate.high is None:
        return True
    return estimate.low <= (0.0 if metric.points else 1.0) <= estimate.high


def otherwise(then: Sequence[Evidence], now: Sequence[Evidence]) -> list[str]:
    """What was otherwise around runs of the same code, a phrase each: clocks, throttling, quota, others."""
    found = list(machine_apart(then, now))
    for what, of in (("others kept the runs from {} of their CPU time", mean_share), (_HELD, _held)):
        before, after = of(then), of(now)
        if before is not None and after is not None and abs(before - after) > _NAMED_FROM:
            found.append(f"{what.format(f'{before:.1f}%')} then, {after:.1f}% now")
    return found


def _held(runs: Sequence[Evidence]) -> float | None:
    known = [t for e in runs if (t := e.conditions.cpu_throttled) is not None]
    return math.fsum(known) / len(known) if known else None
