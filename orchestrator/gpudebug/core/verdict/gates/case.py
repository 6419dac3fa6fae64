"""A trial before its gates: evidence, criteria, and the differences and ratios that several gates ask of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpudebug.core.command import batch
from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Estimate, Evidence, LearningUnit, WorkUnit
from gpudebug.core.samples.window import is_short
from gpudebug.core.statistics import intervals
from gpudebug.core.statistics.contrast import Contrast, contrast, ratio
from gpudebug.core.statistics.metrics import WORK, Metric
from gpudebug.core.verdict import load
from gpudebug.core.verdict import work as work_units
from gpudebug.core.verdict.gates.devices import on_devices
from gpudebug.core.verdict.gates.figures import (
    comparable,
    has_figure,
    has_metric,
    idle,
    typical_error,
    utilisations,
    values_of,
)
from gpudebug.core.verdict.gates.rates import ProgressRates, alike, probed, rates_of, sample_rates
from gpudebug.core.verdict.gates.setting import Criteria, TrialSetting
from gpudebug.core.verdict.ranks import RanksApart, ranks_apart
from gpudebug.core.words import Outcome, WorkName

UNKNOWN = "unknown"
# A ratio of two noisy figures: utilisation (about 10 % of itself) and step rate (5 %).
WORK_PRIOR = intervals.Prior(sd=0.1, weight=4.0)


@dataclass(frozen=True, slots=True)
class TrialCase:
    """A trial before its gates: `delta` of the metric (pp, or a ratio above 1 if it is better), `ratio` of
    throughput, `work` of busy time a step. Where the batch differs, both are of a sample. `steps` and
    `step_work` are the same by the optimizer's steps, if `ratio` is the log's and the probe has all runs.

    `contrast` and `thresholds` are on the metric's own scale: pp, or logarithms of ratios. `number` is the
    hypothesis's, `left_out` says which runs are not among `before` and `after`, and why.
    """

    criteria: Criteria
    setting: TrialSetting
    before: tuple[Evidence, ...]
    after: tuple[Evidence, ...]
    number: int = 0
    contrast: Contrast | None = None
    delta: Estimate | None = None
    ratio: Estimate | None = None
    work: Estimate | None = None
    steps: Estimate | None = None
    step_work: Estimate | None = None
    rates: ProgressRates = field(default_factory=ProgressRates)
    left_out: str | None = None

    @property
    def metric(self) -> Metric:
        """The campaign's; work instead of steps where a step of the trial takes more work than before.

        Steps that take less are no gain, and it is throughput, in the unit of work, that says so.
        """
        name, unit = self.criteria.metric, self.setting.work if self.setting.rule >= 5 else None
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
    def pooled(self) -> bool:
        """Whether windows of the trial's runs say nothing but together."""
        return self.setting.rule >= 5 and any(is_short(e.window) for e in self.after)

    @property
    def trades_work(self) -> bool:
        """Whether the change sets how much work a step takes."""
        return self.other_batch or self.other_step is not None or self.setting.explained

    @property
    def larger_steps_unseen(self) -> str | None:
        """Why fewer steps may be as much work: nothing counts what a step takes. None if something does."""
        unit, counted = self.setting.work, self.rates.unit
        if self.setting.rule < 5 or (unit is not None and not unit.chosen):
            return None
        if self.rates.why is not None:
            return self.rates.why
        if not self.trades_work or counted not in (None, "step"):
            return None
        knob = self.other_step or self.setting.knob or "the batch"
        return f"{knob} sets what a step takes, and no work is counted: fewer steps may be as much of it"

    @property
    def thresholds(self) -> tuple[float, float]:
        """`success` and `failure` on the contrast's scale."""
        return self.metric.threshold(self.criteria.success), self.metric.threshold(self.criteria.failure)

    @property
    def unit(self) -> WorkUnit | None:
        """The unit of work that rates are of; None if they are of steps as the logs count them."""
        found = self.setting.work if self.setting.rule >= 5 else None
        if found is None or (found.source and found.unit == WorkName.OPTIMIZER_STEPS):
            return None
        return found

    @property
    def learning(self) -> LearningUnit | None:
        """What learning is judged by beside the loss that the logs print."""
        return self.setting.learning if self.setting.rule >= 5 else None

    @property
    def ranks(self) -> RanksApart:
        """What the ranks of both sides had otherwise, but for what the change sets of them."""
        if self.setting.rule < 5:
            return RanksApart()
        return ranks_apart(self.before, self.after, self.setting.of_ranks)

    @property
    def other_step(self) -> str | None:
        """A flag or setting beside the batch's by which a step of the trial takes another share of work."""
        if self.setting.work is None or self.setting.rule < 5:
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
    case = _under_like_load(replace(case, before=before, after=after))
    case = replace(case, before=alike(case.before, case.after), after=alike(case.after, case.before))
    runs = (*case.before, *case.after)
    rates = _rates(case)
    found = delta = rate = work = steps = step_work = None
    busy_known = all(has_figure(e) for e in runs) and not idle(runs)
    if all(has_metric(case.metric, e) for e in runs) and comparable(case.metric, runs):
        found = contrast_of(case, case.after)
        delta = _improvement(case.metric, found.interval)
    if (len(rates.before), len(rates.after)) == (len(case.before), len(case.after)):
        rate = _ratio(case, rates.before, rates.after, intervals.RATE_PRIOR)
        busy = _busy(case.before, rates.before), _busy(case.after, rates.after)
        work = _ratio(case, *busy, WORK_PRIOR) if busy_known else None
        if (counted := _by_optimizer(case)) is not None:
            steps = _ratio(case, *counted, intervals.RATE_PRIOR)
            busy = _busy(case.before, counted[0]), _busy(case.after, counted[1])
            step_work = _ratio(case, *busy, WORK_PRIOR) if busy_known else None
    return replace(
        case,
        contrast=found,
        delta=delta,
        ratio=rate,
        work=work,
        steps=steps,
        step_work=step_work,
        rates=rates,
    )


def _under_like_load(case: TrialCase) -> TrialCase:
    """The case without runs that met other strangers on their cores than the trial did."""
    if not case.setting.loads:
        return case
    found = load.choose(case.before, case.after, case.setting.fresh)
    work = case.setting.side_work.of_runs(
        [any(e is kept for kept in found.before) for e in case.before],
        [any(e is kept for kept in found.after) for e in case.after],
    )
    setting = replace(case.setting, fresh=found.fresh, side_work=work)
    text = load.left_out_text(found)
    return replace(case, before=found.before, after=found.after, setting=setting, left_out=text)


def _rates(case: TrialCase) -> ProgressRates:
    """Of the campaign's unit of work; without one of steps, or of samples where the batch differs."""
    unit = case.unit
    if unit is None:
        found = (sample_rates if case.other_batch else rates_of)(case.before, case.after)
        if case.other_step and found.unit in ("step", "samples"):
            return ProgressRates(
                why=f"{case.other_step} differs: a step is not the work of one in the baseline"
            )
        return found
    if unit.unit == WorkName.SAMPLES and (knob := case.other_step) and counts.sets_length(knob):
        return ProgressRates(why=f"{knob} differs: a sample is not the work of one in the baseline")
    known = work_units.rates(unit, case.before, case.after)
    if known.why is not None and unit.unit == WorkName.SAMPLES and unit.chosen and not case.trades_work:
        # A trial without a loader to count has the same batch, as far as anything shows: steps are as good.
        return rates_of(case.before, case.after)
    if known.why is not None:
        return ProgressRates(why=known.why)
    return ProgressRates(unit.unit, known.before, known.after, known.source)


def _by_optimizer(case: TrialCase) -> tuple[list[float], list[float]] | None:
    """Steps of the optimizer a second, where the log's are compared and a step is the same in all runs."""
    runs, setting = (*case.before, *case.after), case.setting
    if not setting.counted or setting.confirmed or setting.explained:
        return None
    if case.other_batch or case.other_step or (case.unit is None and all(map(probed, runs))):
        return None
    before, after = (
        [inside.steps_per_s for e in side if (inside := counts.counted(e)) and inside.steps_per_s]
        for side in (case.before, case.after)
    )
    return (before, after) if len(before) + len(after) == len(runs) else None


def _parts(case: TrialCase, before: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Figures of the baseline as it was recorded, and of its fresh runs."""
    recorded = len(before) - case.setting.fresh
    return before[:recorded], before[recorded:]


def _improvement(metric: Metric, interval: Estimate) -> Estimate:
    assert interval.low is not None and interval.high is not None
    value, low, high = map(metric.improvement, (interval.value, interval.low, interval.high))
    return Estimate(value=value, low=low, high=high)


def contrast_of(case: TrialCase, after: Sequence[Evidence]) -> Contrast:
    """The trial's runs `after` against the case's baseline; each has the metric."""
    case = replace(case, after=tuple(after))
    if not case.metric.points:
        return _contrast_of_ratios(case)
    recorded, fresh = _parts(case, utilisations(case.before))
    typical = typical_error(case.before)
    return contrast(
        recorded,
        utilisations(case.after),
        fresh=fresh,
        looks=case.criteria.max_runs,
        within=(typical, typical_error(case.after)),
        extra=_excess(case, typical),
        prior=_prior(case, intervals.UTILISATION_PRIOR, max(utilisations(case.before), default=0.0)),
        moments=case.setting.loads,
        uneven=case.pooled,
    )


def _contrast_of_ratios(case: TrialCase) -> Contrast:
    before, after = (
        [case.metric.scale(v) for v in values_of(case.metric, r)] for r in (case.before, case.after)
    )
    recorded, fresh = _parts(case, before)
    return contrast(
        recorded,
        after,
        fresh=fresh,
        looks=case.criteria.max_runs,
        within=(_error_of_runs(case, case.before), _error_of_runs(case, case.after)),
        prior=_prior(case, intervals.RATE_PRIOR),
        moments=case.setting.loads,
        uneven=case.pooled,
    )


def _error_of_runs(case: TrialCase, runs: Sequence[Evidence]) -> float:
    """Root mean square of what the metric's own observations in each run leave open, on its scale."""
    return math.sqrt(math.fsum(case.metric.error(e) ** 2 for e in runs) / len(runs))


def _ratio(
    case: TrialCase, before: Sequence[float], after: Sequence[float], prior: intervals.Prior
) -> Estimate:
    recorded, fresh = _parts(case, before)
    looks, moments, prior = case.criteria.max_runs, case.setting.loads, _prior(case, prior)
    return ratio(recorded, after, fresh=fresh, looks=looks, prior=prior, moments=moments, uneven=case.pooled)


def _prior(case: TrialCase, prior: intervals.Prior, scale: float = 1.0) -> intervals.Prior:
    """`prior`, wider where others took time from the runs; `scale` is the level of what is compared."""
    if not case.setting.loads:
        return prior
    return intervals.Prior(math.hypot(prior.sd, scale * load.sway(case.before, case.after)), prior.weight)


def _excess(case: TrialCase, typical: float) -> float:
    """By how much the variance of the trial's mean exceeds that of runs with a `typical` standard error.

    A run that was short or uneven shows less than its peers, which give the run-to-run noise.
    """
    excess = (max(0.0, _own_error(case, e, typical) ** 2 - typical**2) for e in case.after)
    return math.fsum(excess) / len(case.after) ** 2


def _own_error(case: TrialCase, e: Evidence, typical: float) -> float:
    """The run's standard error; where it was ended early, or its window is pooled, no less than its share of
    the baseline's windows allows: so few readings do not show how they vary."""
    own = e.standard_error or 0.0
    if case.setting.rule < 5 or e.window is None:
        return own
    if e.outcome is not Outcome.ENDED_EARLY and not is_short(e.window):
        return own
    whole = [b.window.duration_s for b in case.before if b.window]
    usual = math.fsum(whole) / len(whole) if whole else e.window.duration_s
    return max(own, typical * math.sqrt(max(1.0, usual / e.window.duration_s)))


def _busy(runs: Sequence[Evidence], rates: Sequence[float]) -> list[float]:
    return [(e.utilisation or 0.0) / rate for e, rate in zip(runs, rates, strict=True)]
