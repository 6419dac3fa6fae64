"""What a verdict shows of its runs: both sides' figures, and the level with the runs in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from gpudebug.core.records import CoursePoint
from gpudebug.core.statistics.intervals import CONFIDENCE, t_quantile
from gpudebug.core.statistics.level import POINTS
from gpudebug.core.verdict.gates.case import TrialCase, effect_of, in_order
from gpudebug.core.verdict.gates.figures import has_figure, utilisations, values_of
from gpudebug.core.verdict.gates.rates import mean

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
