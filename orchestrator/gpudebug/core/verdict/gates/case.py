"""A trial before its gates: evidence, criteria, and the differences and ratios that several gates ask of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpudebug.core.command import batch
from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Estimate, Evidence, LearningUnit, WorkUnit
from gpudebug.core.statistics.intervals import SURE
from gpudebug.core.statistics.level import (
    POINTS,
    RATIOS,
    SHORT,
    Effect,
    Noise,
    Seen,
    follow,
    relative_variance,
)
from gpudebug.core.statistics.metrics import WORK, Metric
from gpudebug.core.verdict import machine
from gpudebug.core.verdict import work as work_units
from gpudebug.core.verdict.gates.figures import (
    alike,
    comparable,
    has_figure,
    has_metric,
    idle,
    on_devices,
    probed,
    rates_of,
    sample_rates,
    values_of,
)
from gpudebug.core.verdict.gates.setting import Criteria, Order, TrialSetting
from gpudebug.core.verdict.ranks import RanksApart, ranks_apart
from gpudebug.core.verdict.work import WorkRates
from gpudebug.core.words import WorkName

UNKNOWN = "unknown"
SIDE_SURE = 0.998
"""Two-sided confidence at which a figure beside the metric fails a trial that would be VALIDATED."""
_LARGEST_LOG = 700.0
"""Beyond this `math.exp` overflows."""


@dataclass(frozen=True, slots=True)
class TrialCase:
    """A trial before its gates: `delta` of the metric (pp, or a ratio above 1 if it is better), `ratio` of
    throughput, `work` of busy time a step. Where the batch differs, both are of a sample. `steps` and
    `step_work` are the same by the optimizer's steps, if `ratio` is the log's and the probe has all runs.

    `effect` and `thresholds` are on the metric's own scale: pp, or logarithms of ratios; `rate_effect` and
    `work_effect` are logarithms. `number` is the hypothesis's.
    """

    criteria: Criteria
    setting: TrialSetting
    before: tuple[Evidence, ...]
    after: tuple[Evidence, ...]
    number: int = 0
    effect: Effect | None = None
    rate_effect: Effect | None = None
    work_effect: Effect | None = None
    delta: Estimate | None = None
    ratio: Estimate | None = None
    work: Estimate | None = None
    steps: Estimate | None = None
    step_work: Estimate | None = None
    rates: WorkRates = field(default_factory=WorkRates)

    @property
    def metric(self) -> Metric:
        """The campaign's; work instead of steps where a step of the trial takes more work than before.

        Steps that take less are no gain, and it is throughput, in the unit of work, that says so.
        """
        name, unit = self.criteria.metric, self.setting.work
        if name == "steps_per_s" and (self.larger_log_steps or (self.trades_work and self._larger_steps())):
            name = WORK
        if name != WORK or unit is None:
            return Metric(name, lower=self.criteria.direction == "lower")
        known = work_units.rates(unit, self.before, self.after)
        return Metric(WORK, work=(unit.unit, known.source or unit.source))

    def _larger_steps(self) -> bool:
        """Whether a step of the trial is more work, by the runs; a ratio of counts has no speed in it."""
        grown = self.unit and work_units.per_step(self.unit, self.before, self.after, lambda e: e.steps_per_s)
        return bool(grown and grown > counts.APART_COUNTED)

    @property
    def larger_log_steps(self) -> bool:
        """Whether a step of the log is more work, and one of the optimizer is not: SB3's `n_updates`."""
        if self.unit is None or self.unit.unit == WorkName.OPTIMIZER_STEPS or not self._larger_steps():
            return False
        grown = work_units.per_step(self.unit, self.before, self.after, counts.optimizer_rate)
        return grown is not None and 1 / counts.APART <= grown <= counts.APART

    @property
    def most(self) -> int:
        """How many runs of the trial may be made: twice as many of short ones, and as many again each time
        that it was continued."""
        return self.criteria.max_runs * (2 if self.short else 1) * (1 + self.setting.more)

    @property
    def short(self) -> bool:
        """Whether a run is short: one alone of the change then decides nothing."""
        return any(relative_variance(_seconds(e)) > SHORT for e in (*self.before, *self.after))

    @property
    def trades_work(self) -> bool:
        """Whether the change sets how much work a step takes."""
        return self.other_batch or self.other_step is not None or self.setting.explained

    @property
    def larger_steps_unseen(self) -> str | None:
        """Why fewer steps may be as much work: nothing counts what a step takes. None if something does."""
        unit, counted = self.setting.work, self.rates.unit
        if unit is not None and not unit.chosen:
            return None
        if self.rates.why is not None:
            return self.rates.why
        if not self.trades_work or counted not in (None, "step"):
            return None
        knob = self.other_step or self.setting.knob or "the batch"
        return (
            f"{knob} changes how much one step does, and nothing counts the work: fewer steps may be the "
            "same work"
        )

    @property
    def thresholds(self) -> tuple[float, float]:
        """`success` and `failure` on the contrast's scale."""
        return self.metric.threshold(self.criteria.success), self.metric.threshold(self.criteria.failure)

    @property
    def unit(self) -> WorkUnit | None:
        """The unit of work that rates are of; None if they are of steps as the logs count them."""
        found = self.setting.work
        if found is None or (found.source and found.unit == WorkName.OPTIMIZER_STEPS):
            return None
        return found

    @property
    def learning(self) -> LearningUnit | None:
        """What learning is judged by beside the loss that the logs print."""
        return self.setting.learning

    @property
    def ranks(self) -> RanksApart:
        """What the ranks of both sides had otherwise, but for what the change sets of them."""
        return ranks_apart(self.before, self.after, self.setting.of_ranks)

    @property
    def other_step(self) -> str | None:
        """A flag or setting beside the batch's by which a step of the trial takes another share of work."""
        if self.setting.work is None:
            return None
        flags = [e.step_flags for e in (*self.before, *self.after)]
        names = dict.fromkeys(name for one in flags for name in one)
        found = next((name for name in names if len({one.get(name) for one in flags}) > 1), None)
        knob = self.setting.knob if self.setting.explained else None
        return found or (knob if knob is not None and counts.sizes_step(knob) else None)

    @property
    def other_batch(self) -> bool:
        """Whether a step of the trial may take another number of samples than one of the baseline."""
        runs = (*self.before, *self.after)
        by_steps = all(e.step_unit in (None, "step") for e in runs)
        return by_steps and (self.setting.batch or batch.differs(runs))


def measure(case: TrialCase) -> TrialCase:
    """Differences and ratios of the runs that can be compared; None if one of them lacks its figure.

    A run without a figure is not missing by chance: to judge by the others would let it help a hypothesis.
    """
    before, after = on_devices(case.criteria.devices, case.before, case.after)
    case = replace(case, before=alike(before, after), after=alike(after, before))
    runs = (*case.before, *case.after)
    rates = _rates(case)
    case = replace(case, rates=rates, effect=_of_metric(case))
    busy_known = all(has_figure(e) for e in runs) and not idle(runs)
    rate = work = steps = step_work = None
    if (len(rates.before), len(rates.after)) == (len(case.before), len(case.after)):
        rate = ratio_of(case, rates.before, rates.after)
        busy = _busy(case.before, rates.before), _busy(case.after, rates.after)
        work = ratio_of(case, *busy) if busy_known else None
        if (counted := _by_optimizer(case)) is not None:
            steps = ratio_of(case, *counted)
            busy = _busy(case.before, counted[0]), _busy(case.after, counted[1])
            step_work = ratio_of(case, *busy) if busy_known else None
    return replace(
        case,
        delta=_improvement(case.metric, case.effect) if case.effect is not None else None,
        rate_effect=rate,
        ratio=ratio_estimate(rate),
        work_effect=work,
        work=ratio_estimate(work),
        steps=ratio_estimate(steps),
        step_work=ratio_estimate(step_work),
    )


def effect_of(case: TrialCase, before: Sequence[float], after: Sequence[float], noise: Noise) -> Effect:
    """What the runs say of the change, by one value of each, on a scale on which differences add up."""
    return follow(_seen(case, before, after, noise), noise)


def _seen(case: TrialCase, before: Sequence[float], after: Sequence[float], noise: Noise) -> list[Seen]:
    values = {id(e): v for e, v in zip((*case.before, *case.after), (*before, *after), strict=True)}
    return [
        Seen(
            one.place,
            one.changed,
            values[id(one.evidence)],
            machine.share(one.evidence),
            relative_variance(_seconds(one.evidence), _own_error(case, one.evidence, noise)),
        )
        for one in in_order(case)
    ]


class PlacedRun(NamedTuple):
    """A run of either side in its place."""

    place: int
    changed: bool
    evidence: Evidence


def in_order(case: TrialCase) -> list[PlacedRun]:
    """Return all runs, oldest first."""
    first, last = len(case.before), len(case.before) + len(case.after)
    order = case.setting.order or Order(tuple(range(first)), tuple(range(first, last)), last)
    sides = (order.before, case.before, False), (order.after, case.after, True)
    found = [
        PlacedRun(place, changed, e)
        for places, runs, changed in sides
        for place, e in zip(places, runs, strict=True)
    ]
    return sorted(found, key=lambda one: one.place)


def _seconds(e: Evidence) -> float | None:
    """Of its steady window; None if it has none, as a program that prints latencies alone."""
    return e.window.duration_s if e.window is not None else None


def _own_error(case: TrialCase, e: Evidence, noise: Noise) -> float:
    """Return what few latencies of the run leave open, in units of the noise."""
    return case.metric.error(e) / noise.sd


def _of_metric(case: TrialCase) -> Effect | None:
    found = seen_by_metric(case)
    return follow(*found) if found is not None else None


def seen_by_metric(case: TrialCase) -> tuple[list[Seen], Noise] | None:
    """Return what each run shows of the metric, oldest first, and its assumed noise; None if a run lacks it,
    or if they cannot be compared."""
    metric, runs = case.metric, (*case.before, *case.after)
    if not all(has_metric(metric, e) for e in runs) or not comparable(metric, runs):
        return None
    before, after = ([metric.scale(v) for v in values_of(metric, side)] for side in (case.before, case.after))
    noise = POINTS if metric.points else RATIOS
    return _seen(case, before, after, noise), noise


def ratio_of(case: TrialCase, before: Sequence[float], after: Sequence[float]) -> Effect:
    """Return the effect on the logarithm of a positive figure of each run."""
    return effect_of(case, [math.log(v) for v in before], [math.log(v) for v in after], RATIOS)


def ratio_estimate(effect: Effect | None, sure: float = SURE) -> Estimate | None:
    """Trial over baseline."""
    if effect is None:
        return None
    value, low, high = (math.exp(min(x, _LARGEST_LOG)) for x in (effect.value, *effect.bounds(sure)))
    return Estimate(value=value, low=low, high=high)


def _improvement(metric: Metric, effect: Effect) -> Estimate:
    value, low, high = map(metric.improvement, (effect.value, *effect.bounds()))
    return Estimate(value=value, low=low, high=high)


def _rates(case: TrialCase) -> WorkRates:
    """Of the campaign's unit of work; without one of steps, or of samples where the batch differs."""
    unit = case.unit
    if unit is None:
        found = (sample_rates if case.other_batch else rates_of)(case.before, case.after)
        if case.other_step and found.unit in ("step", "samples"):
            return WorkRates(why=f"{case.other_step} differs: a step is not the work of one in the baseline")
        return found
    if unit.unit == WorkName.SAMPLES and (knob := case.other_step) and counts.sets_length(knob):
        return WorkRates(why=f"{knob} differs: a sample is not the work of one in the baseline")
    known = work_units.rates(unit, case.before, case.after)
    if known.why is not None and unit.unit == WorkName.SAMPLES and unit.chosen and not case.trades_work:
        # A trial without a loader to count has the same batch, as far as anything shows: steps are as good.
        return rates_of(case.before, case.after)
    return known


def _by_optimizer(case: TrialCase) -> tuple[list[float], list[float]] | None:
    """Steps of the optimizer a second, where the log's are compared and a step is the same in all runs."""
    runs, setting = (*case.before, *case.after), case.setting
    if setting.confirmed or setting.explained:
        return None
    if case.other_batch or case.other_step or (case.unit is None and all(map(probed, runs))):
        return None
    before, after = (
        [inside.steps_per_s for e in side if (inside := counts.counted(e)) and inside.steps_per_s]
        for side in (case.before, case.after)
    )
    return (before, after) if len(before) + len(after) == len(runs) else None


def _busy(runs: Sequence[Evidence], rates: Sequence[float]) -> list[float]:
    return [(e.utilisation or 0.0) / rate for e, rate in zip(runs, rates, strict=True)]
