"""What two groups of runs show beside each other: their figures, the level in their order, how far apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from gpudebug.core.records import CoursePoint, Estimate, Evidence
from gpudebug.core.statistics.intervals import CONFIDENCE, t_quantile
from gpudebug.core.statistics.level import POINTS
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates.case import TrialCase, effect_of, in_order, measure
from gpudebug.core.verdict.gates.figures import has_figure, mean, utilisations, values_of
from gpudebug.core.verdict.gates.setting import Criteria, TrialSetting
from gpudebug.core.verdict.machine import machine_apart, mean_share

Sides: TypeAlias = tuple[float | None, float | None]


class Shown(NamedTuple):
    """Baseline and trial: utilisation in percent, the metric in its unit, progress a second."""

    utilisation: Sides
    metric: Sides
    throughput: Sides


def sides_of(case: TrialCase) -> Shown:
    """After is the mean of the trial's runs, before the level during them: before and effect make after.

    Where a run lacks a figure, so that the effect is unknown, each is the mean of the runs that have it.
    """
    metric = case.metric
    after = metric.mean(values_of(metric, case.after))
    before = metric.mean(values_of(metric, case.before))
    if case.effect is not None and after is not None:
        before = metric.shifted(after, -case.effect.value)
    return Shown(_utilisation(case), (before, after), _throughput(case))


def _utilisation(case: TrialCase) -> Sides:
    sides = utilisations(case.before), utilisations(case.after)
    before, after = map(mean, sides)
    if after is not None and all(map(has_figure, (*case.before, *case.after))):
        effect = case.effect if case.metric.points else effect_of(case, *sides, POINTS)
        before = after - effect.value if effect is not None else before
    return before, after


def _throughput(case: TrialCase) -> Sides:
    """Geometric means, as the ratio is of such."""
    before, after = map(_geometric, (case.rates.before, case.rates.after))
    if case.ratio is not None and after is not None and case.ratio.value > 0:
        before = after / case.ratio.value
    return before, after


def _geometric(rates: Sequence[float]) -> float | None:
    if not rates or min(rates) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, rates)) / len(rates))


def course_of(case: TrialCase) -> tuple[CoursePoint, ...]:
    """Order the runs, each with the level after it and its 95 % band; none if a run lacks the metric."""
    effect, metric = case.effect, case.metric
    if effect is None:
        return ()
    half = t_quantile(0.5 + CONFIDENCE / 2, effect.freedom) * effect.noise
    found = []
    for one, stand in zip(in_order(case), effect.stands, strict=True):
        ends = [metric.unscaled(stand.value + side * half * stand.spread) for side in (-1, 1)]
        found.append(
            CoursePoint(
                run=one.evidence.run,
                part="trial" if one.changed else "baseline",
                place=one.place,
                value=metric.value(one.evidence) or 0.0,
                level=metric.unscaled(stand.value),
                low=min(ends),
                high=max(ends),
            )
        )
    return tuple(found)


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
