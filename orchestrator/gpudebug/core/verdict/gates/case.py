"""A trial before its gates: evidence, criteria, and the differences and ratios that several gates ask of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpudebug.core.command import batch
from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics import intervals
from gpudebug.core.statistics.contrast import Contrast, contrast, ratio
from gpudebug.core.statistics.metrics import GPU_UTIL, Metric
from gpudebug.core.verdict.took_effect import ChangeEffect

UNKNOWN = "unknown"
# Below the driver's resolution, in percent, a device's busy time says nothing to compare.
IDLE = 1.0
# A ratio of two noisy figures: utilisation (about 10 % of itself) and step rate (5 %).
WORK_PRIOR = intervals.Prior(sd=0.1, weight=4.0)


@dataclass(frozen=True, slots=True)
class Criteria:
    """The thresholds, fixed before the run: `success` and `failure` in pp for utilisation, a ratio for every
    other `metric`; `min_window` in seconds."""

    success: float
    failure: float
    loss: str
    throughput: str
    min_window: float
    max_runs: int
    metric: str = GPU_UTIL
    direction: str = "higher"


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """What a trial changed besides its figures.

    `locked` names locked knobs that it touched, `changes` counts its single changes, `differences`
    names what differs in the surroundings of baseline and trial, `window_advice` the flag and value
    that would make the window long enough. `fresh` counts the last of the baseline's runs: those that were
    made beside the trial. `elsewhere` names packages that the program imports from another checkout, `effect`
    is what the program shows of the change (None: nothing), `other_steps` says why a step of the trial is not
    one of the baseline. `batch` says that the change names a batch's size if no flag shows it.

    `counted` says that log, probe and command are held against each other: `knob` is a flag or variable of
    the change that may set how much a step takes, `code` whether the change holds code, `touches` what of it
    touches the printing or the step loop, `beyond` what a run printed beyond its command's plan. `confirmed`
    is why a person takes counts that do not fit for explained.
    """

    locked: tuple[str, ...] = ()
    changes: int = 1
    compound: bool = False
    differences: tuple[str, ...] = ()
    window_advice: str | None = None
    fresh: int = 0
    elsewhere: tuple[str, ...] = ()
    effect: ChangeEffect | None = None
    other_steps: str | None = None
    batch: bool = False
    counted: bool = True
    knob: str | None = None
    code: bool = False
    touches: str | None = None
    beyond: str | None = None
    confirmed: str | None = None

    @property
    def explained(self) -> bool:
        """Whether a step may take more or less than in the baseline; code explains nothing."""
        return self.knob is not None and not self.code


@dataclass(frozen=True, slots=True)
class ProgressRates:
    """Progress per second of the runs that have one, all in the same `unit`; None if the units differ."""

    unit: str | None = None
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialCase:
    """A trial before its gates: `delta` of the metric (pp, or a ratio above 1 if it is better), `ratio` of
    throughput, `work` of busy time a step. Where the batch differs, both are of a sample. `steps` and
    `step_work` are the same by the optimizer's steps, if `ratio` is the log's and the probe has all runs.

    `contrast` and `thresholds` are on the metric's own scale: pp, or logarithms of ratios. `number` is the
    hypothesis's.
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

    @property
    def metric(self) -> Metric:
        return Metric(self.criteria.metric, lower=self.criteria.direction == "lower")

    @property
    def thresholds(self) -> tuple[float, float]:
        """`success` and `failure` on the contrast's scale."""
        return self.metric.threshold(self.criteria.success), self.metric.threshold(self.criteria.failure)

    @property
    def other_batch(self) -> bool:
        """Whether a step of the trial may take another number of samples than one of the baseline."""
        runs = (*self.before, *self.after)
        by_steps = all(e.step_unit in (None, "step") for e in runs)
        return by_steps and (self.setting.batch or batch.differs(runs))


def measure(case: TrialCase) -> TrialCase:
    """Differences and ratios; None if one run lacks its figure, whatever the others say.

    A run without a figure is not missing by chance: to judge by the others would let it help a hypothesis.
    """
    case = replace(case, before=alike(case.before, case.after), after=alike(case.after, case.before))
    runs = (*case.before, *case.after)
    rates = (sample_rates if case.other_batch else rates_of)(case.before, case.after)
    found = delta = rate = work = steps = step_work = None
    busy_known = all(has_figure(e) for e in runs) and not idle(runs)
    if all(has_metric(case.metric, e) for e in runs) and comparable(case.metric, runs):
        found = _contrast(case)
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


def _by_optimizer(case: TrialCase) -> tuple[list[float], list[float]] | None:
    """Steps of the optimizer a second, where the log's are compared and a step is the same in all runs."""
    runs, setting = (*case.before, *case.after), case.setting
    if not setting.counted or setting.confirmed or setting.explained:
        return None
    if case.other_batch or all(map(probed, runs)):
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


def _contrast(case: TrialCase) -> Contrast:
    if not case.metric.points:
        return _contrast_of_ratios(case)
    recorded, fresh = _parts(case, utilisations(case.before))
    typical = _typical_error(case.before)
    return contrast(
        recorded,
        utilisations(case.after),
        fresh=fresh,
        looks=case.criteria.max_runs,
        within=(typical, _typical_error(case.after)),
        extra=_excess(case.after, typical),
    )


def _contrast_of_ratios(case: TrialCase) -> Contrast:
    before, after = (
        [case.metric.scale(v) for v in values_of(case.metric, r)] for r in (case.before, case.after)
    )
    recorded, fresh = _parts(case, before)
    return contrast(recorded, after, fresh=fresh, looks=case.criteria.max_runs, prior=intervals.RATE_PRIOR)


def _ratio(
    case: TrialCase, before: Sequence[float], after: Sequence[float], prior: intervals.Prior
) -> Estimate:
    recorded, fresh = _parts(case, before)
    return ratio(recorded, after, fresh=fresh, looks=case.criteria.max_runs, prior=prior)


def _excess(runs: Sequence[Evidence], typical: float) -> float:
    """By how much the variance of the runs' mean exceeds that of runs with a `typical` standard error.

    A run that was short or uneven shows less than its peers, which give the run-to-run noise.
    """
    excess = (max(0.0, (e.standard_error or 0.0) ** 2 - typical**2) for e in runs)
    return math.fsum(excess) / len(runs) ** 2


def idle(runs: Sequence[Evidence]) -> bool:
    return any(u < IDLE for u in utilisations(runs))


def _typical_error(runs: Sequence[Evidence]) -> float:
    """Root mean square of the runs' own standard errors, in pp."""
    return math.sqrt(math.fsum((e.standard_error or 0.0) ** 2 for e in runs) / len(runs))


def has_figure(e: Evidence) -> bool:
    return e.utilisation is not None and e.standard_error is not None


def has_metric(metric: Metric, e: Evidence) -> bool:
    return has_figure(e) if metric.points else metric.value(e) is not None


def comparable(metric: Metric, runs: Sequence[Evidence]) -> bool:
    """Whether the metric has the same source in all runs."""
    return len({told_by(metric, e) for e in runs}) == 1


def told_by(metric: Metric, e: Evidence) -> str | None:
    """Name the metric's source; of steps only whether it is the log: one of its steps may differ."""
    if metric.name == "samples_per_s":
        return e.samples_by
    if not metric.by_steps:
        return None
    by = e.steps_by if metric.name == "steps_per_s" else e.step_time_by
    return by if by == "probe" else "log"


def values_of(metric: Metric, runs: Sequence[Evidence]) -> list[float]:
    """The metric of the runs that have it, in its own unit."""
    return [v for e in runs if (v := metric.value(e)) is not None]


def utilisations(runs: Sequence[Evidence]) -> list[float]:
    """Of the runs that have one, in percent."""
    return [e.utilisation for e in runs if e.utilisation is not None]


def rates_of(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> ProgressRates:
    """The runs' and the others' progress per second, if all that have one count the same."""
    runs, others = alike(runs, others), alike(others, runs)
    before, after = [rate_of(e) for e in runs], [rate_of(e) for e in others]
    counted = {(rate[0], probed(e)) for e in (*runs, *others) if (rate := rate_of(e))}
    if len(counted) != 1:
        return ProgressRates()
    return ProgressRates(counted.pop()[0], tuple(r[1] for r in before if r), tuple(r[1] for r in after if r))


def sample_rates(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> ProgressRates:
    """As `rates_of`, in samples, if they have the same source in all runs."""
    every = (*runs, *others)
    if len({e.samples_by for e in every}) != 1 or any(not e.samples_per_s for e in every):
        return ProgressRates()
    before, after = ([e.samples_per_s for e in side if e.samples_per_s] for side in (runs, others))
    return ProgressRates("samples", tuple(before), tuple(after))


def rate_of(e: Evidence) -> tuple[str, float] | None:
    """What the run's log counts and how much of it a second."""
    unit = e.step_unit or "step"
    rate = e.progress_per_s or (e.steps_per_s if unit == "step" else None)
    return (unit, rate) if rate else None


def probed(e: Evidence) -> bool:
    """Whether its rate is of steps that the probe counted: if the log counts, one may be another thing."""
    return e.steps_by == "probe" and e.step_unit in (None, "step")


def alike(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> tuple[Evidence, ...]:
    """The runs with steps as the probe counted them, if not all logs of these and of the others tell them
    and the probe reported all; else as they are."""
    every = (*runs, *others)
    if len({probed(e) for e in every}) == 1 or not all(_inside(e) for e in every):
        return tuple(runs)
    return tuple(
        e.model_copy(update={"steps_per_s": rate, "progress_per_s": rate, "steps_by": "probe"})
        for e in runs
        if (rate := _inside(e))
    )


def _inside(e: Evidence) -> float | None:
    """Steps per second by the probe, of a run whose log counts nothing else."""
    return e.probe.steps_per_s if e.probe and e.step_unit in (None, "step") else None


def _busy(runs: Sequence[Evidence], rates: Sequence[float]) -> list[float]:
    return [(e.utilisation or 0.0) / rate for e, rate in zip(runs, rates, strict=True)]


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.fsum(values) / len(values) if values else None
