"""Which effects a campaign can tell from noise, and how many runs an effect takes, before they are made.

All figures are on a scale on which effects add: percentage points, or logarithms for a rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpudebug.core.statistics.contrast import Contrast, most_fresh
from gpudebug.core.statistics.intervals import Prior, normal_quantile, pooled

POWER = 0.8
"""An effect counts as resolved where four trials of five would tell it: the usual 80 % power."""
_REACH = normal_quantile(POWER)
MOST_TRIAL_RUNS = 200
"""What takes more runs than these is out of reach."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How much one figure varies from one run of a command to the next.

    `sd` is what the rule works with: the spread of the runs and its prior, which counts as `weight` runs.
    `own_sd` is that of the `runs` alone, None if no two of them are alike. `error` is the typical
    standard error within one run.
    """

    sd: float
    own_sd: float | None
    runs: int
    weight: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A trial before its first run, against a baseline of `recorded` runs and `fresh` ones of earlier trials.

    It has at most `max_runs` runs. `left` is how many runs the device time pays for, None without a limit.
    """

    recorded: int
    max_runs: int
    left: int | None = None
    fresh: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs of the trial, and of the baseline beside it."""

    trial: int
    baseline: int

    @property
    def total(self) -> int:
        return self.trial + self.baseline


def noise(groups: Sequence[Sequence[float]], prior: Prior, error: float = 0.0) -> Noise | None:
    """The spread that groups of like runs show, one value a run; None if there is no run at all."""
    known = [group for group in groups if group]
    runs = sum(map(len, known))
    if not runs:
        return None
    own = pooled(known, Prior(sd=0.0, weight=0.0))[0] if runs > len(known) else None
    return Noise(sd=pooled(known, prior)[0], own_sd=own, runs=runs, weight=prior.weight, error=error)


def detectable_effect(found: Noise, plan: Plan) -> float | None:
    """Return the detectable effect: its interval excludes 0 in four trials of five.

    Half the width of the interval that holds at every look, once all runs are made that plan and device time
    allow, and the distance by which four estimates of five fall short at most. It takes today's spread for
    the spread to come, and a machine that does not drift. None if not one more run can be paid for.
    """
    last = _last(found, plan)
    return None if last is None else last.half_width + _REACH * last.error


def smallest_passed(found: Noise, plan: Plan, success: float, failure: float) -> float | None:
    """The smallest effect that passes the delta gate in four trials of five, planned as `detectable_effect`.

    The estimate then reaches `success`, and the interval's lower bound is above `failure`.
    """
    last = _last(found, plan)
    return None if last is None else max(success, failure + last.half_width) + _REACH * last.error


def runs_for(found: Noise, plan: Plan, effect: float) -> RunCounts | None:
    """The fewest runs after which an interval excludes, in four trials of five, what lies `effect` away.

    `success` less `failure` is the effect for a trial that is as good as `success` asks: its lower bound is
    then above `failure`. The runs come in the protocol's order. Where `max_runs` trial runs do not do, it is
    tried with a greater `max_runs`, and as many runs of the baseline. What the device time pays for is not
    asked. None: out of reach.
    """
    for runs in _path(found, plan):
        if _tells(_contrast(found, plan, runs), effect):
            return runs
    for limit in range(plan.max_runs + 1, MOST_TRIAL_RUNS + 1):
        runs = RunCounts(limit, max(0, limit - plan.recorded - plan.fresh))
        if _tells(_contrast(found, replace(plan, max_runs=limit), runs), effect):
            return runs
    return None


def _tells(contrast: Contrast, effect: float) -> bool:
    return contrast.half_width + _REACH * contrast.error <= effect


def _last(found: Noise, plan: Plan) -> Contrast | None:
    """What is known when no run is left."""
    last = None
    for runs in _path(found, plan):
        if plan.left is not None and runs.total > plan.left:
            break
        last = runs
    return None if last is None else _contrast(found, plan, last)


def _path(found: Noise, plan: Plan) -> Iterator[RunCounts]:
    """A trial's runs as they add up, each where it narrows the interval most: the order of `protocol`."""
    most, runs = most_fresh(plan.max_runs, plan.recorded) - plan.fresh, RunCounts(1, 0)
    while True:
        yield runs
        contrast = _contrast(found, plan, runs)
        trial_left = runs.trial < plan.max_runs
        narrower = contrast.baseline_variance >= contrast.trial_variance or not trial_left
        if narrower and runs.baseline < most:
            runs = RunCounts(runs.trial, runs.baseline + 1)
        elif trial_left:
            runs = RunCounts(runs.trial + 1, runs.baseline)
        else:
            return


def _contrast(found: Noise, plan: Plan, runs: RunCounts) -> Contrast:
    """The trial after these runs, its estimate aside. Each group of like runs adds its degrees of freedom."""
    fresh = plan.fresh + runs.baseline
    df = found.weight + plan.recorded - 1 + runs.trial - 1 + max(fresh - 1, 0)
    within = found.error * math.sqrt(1 / (plan.recorded + fresh) + 1 / runs.trial)
    return Contrast(
        value=0.0,
        sd=found.sd,
        df=df,
        recorded=plan.recorded,
        fresh=fresh,
        after=runs.trial,
        within=within,
        looks=plan.max_runs,
    )
