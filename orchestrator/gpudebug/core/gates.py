"""The gates of a verdict: what each one asks of baseline and trial, and what it found."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gpudebug.core import stats
from gpudebug.core.models import Estimate, Evidence, Gate
from gpudebug.core.words import INFRASTRUCTURE, Outcome, Result, Trend

UNKNOWN = "unknown"
# Throughput: `better` needs a gain that a person would keep; `not_worse` forgives noise.
BETTER_ESTIMATE = 1.03
NOT_WORSE_BOUND = 0.97
# Busy seconds a step stay equal when a stall is removed.
WORK_PASS = 1.15
WORK_FAIL = 1.25
# Below the driver's resolution, in percent, a device's busy time says nothing to compare.
IDLE = 1.0
# A ratio of two noisy figures: utilisation (about 10 % of itself) and step rate (5 %).
WORK_PRIOR = stats.Prior(sd=0.1, weight=4.0)


@dataclass(frozen=True, slots=True)
class Criteria:
    """The thresholds, fixed before the run: `success` and `failure` in pp, `min_window` in seconds."""

    success: float
    failure: float
    loss: str
    throughput: str
    min_window: float
    max_runs: int


@dataclass(frozen=True, slots=True)
class Setting:
    """What a trial changed besides its figures.

    `locked` names locked knobs that it touched, `changes` counts its single changes, `differences`
    names what differs in the surroundings of baseline and trial, `window_advice` the flag and value
    that would make the window long enough.
    """

    locked: tuple[str, ...] = ()
    changes: int = 1
    compound: bool = False
    differences: tuple[str, ...] = ()
    window_advice: str | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """Progress per second of the runs that have one, all in the same `unit`; None where the units differ."""

    unit: str | None = None
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A trial before its gates: `delta` in pp, `ratio` of throughput, `work` of busy time a step."""

    criteria: Criteria
    setting: Setting
    before: tuple[Evidence, ...]
    after: tuple[Evidence, ...]
    delta: Estimate | None = None
    ratio: Estimate | None = None
    work: Estimate | None = None
    rates: Rates = field(default_factory=Rates)


def measure(case: Case) -> Case:
    """Differences and ratios; None where one run lacks its figure, whatever the others say.

    A run without a figure is not missing by chance: to judge by the others would let it help a hypothesis.
    """
    runs = (*case.before, *case.after)
    rates = rates_of(case.before, case.after)
    delta = ratio = work = None
    if all(_measured(e) for e in runs):
        delta = stats.difference(
            utilisations(case.before),
            utilisations(case.after),
            within=(_typical_error(case.before), _typical_error(case.after)),
        )
    if (len(rates.before), len(rates.after)) == (len(case.before), len(case.after)):
        ratio = stats.ratio(rates.before, rates.after)
        busy = _busy(case.before, rates.before), _busy(case.after, rates.after)
        work = stats.ratio(*busy, prior=WORK_PRIOR) if delta and not _idle(runs) else None
    return replace(case, delta=delta, ratio=ratio, work=work, rates=rates)


def _idle(runs: Sequence[Evidence]) -> bool:
    return any(u < IDLE for u in utilisations(runs))


def _typical_error(runs: Sequence[Evidence]) -> float:
    """Root mean square of the runs' own standard errors, in pp."""
    return math.sqrt(math.fsum((e.standard_error or 0.0) ** 2 for e in runs) / len(runs))


def _measured(e: Evidence) -> bool:
    return e.utilisation is not None and e.standard_error is not None


def utilisations(runs: Sequence[Evidence]) -> list[float]:
    """Of the runs that have one, in percent."""
    return [e.utilisation for e in runs if e.utilisation is not None]


def rates_of(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> Rates:
    """The runs' and the others' progress per second, where all that have one count the same."""
    before, after = [_rate(e) for e in runs], [_rate(e) for e in others]
    units = {rate[0] for rate in (*before, *after) if rate}
    if len(units) != 1:
        return Rates()
    return Rates(units.pop(), tuple(r[1] for r in before if r), tuple(r[1] for r in after if r))


def _rate(e: Evidence) -> tuple[str, float] | None:
    """What the run's log counts and how much of it a second."""
    unit = e.step_unit or "step"
    rate = e.progress_per_s or (e.steps_per_s if unit == "step" else None)
    return (unit, rate) if rate else None


def _busy(runs: Sequence[Evidence], rates: Sequence[float]) -> list[float]:
    return [(e.utilisation or 0.0) / rate for e, rate in zip(runs, rates, strict=True)]


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.fsum(values) / len(values) if values else None


# A program that dies of one of these was ended from outside: by a person, a scheduler, the kernel.
_FOREIGN = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})


def is_infrastructure(e: Evidence) -> bool:
    """Whether the run's end says nothing of the hypothesis: lost device or sampler, interrupted, killed."""
    return e.outcome in INFRASTRUCTURE or (e.outcome is Outcome.CRASHED and _ended_from_outside(e))


def _ended_from_outside(e: Evidence) -> bool:
    if e.failure is not None and e.failure.kind not in ("signal", "interrupted"):
        return False
    # A shell or a launcher says 128 + N where a program below it was ended by signal N.
    ended_by = e.signal or (e.exit_status or 0) - 128
    return ended_by in _FOREIGN or (e.failure is not None and e.failure.kind == "interrupted")


def worst_trend(runs: Sequence[Evidence]) -> Trend:
    """The worst trend of the runs: one that diverges is not made good by one that does not."""
    trends = [e.loss.trend for e in runs]
    for worst in (Trend.NAN, Trend.DIVERGING, Trend.UNKNOWN, Trend.PLATEAU):
        if worst in trends:
            return worst
    return Trend.CONVERGING


def training_text(runs: Sequence[Evidence]) -> str:
    """`SUCCESS`, or how the first failed run ended, with its failure class."""
    failed = next((e for e in runs if e.outcome is not Outcome.COMPLETED), None)
    if failed is None:
        return "SUCCESS"
    kind = f" ({failed.failure.kind})" if failed.failure else ""
    line = failed.failure.lines[-1] if failed.failure and failed.failure.lines else failed.reason
    return f"FAILED - {failed.outcome}{kind}" + (f": {line}" if line else "")


def _outcome_gate(case: Case) -> Gate:
    failed = next((e for e in case.after if e.outcome is not Outcome.COMPLETED), None)
    value = training_text(case.after).removeprefix("FAILED - ") if failed else str(Outcome.COMPLETED)
    if failed is None:
        result = Result.PASS
    else:
        result = Result.UNKNOWN if is_infrastructure(failed) else Result.FAIL
    return Gate(name="outcome", value=value, threshold="training ends by itself with status 0", result=result)


def _loss_gate(case: Case) -> Gate:
    trend = worst_trend(case.after)
    gate = Gate(name="loss", value=str(trend), threshold=str(Trend.CONVERGING), result=Result.UNKNOWN)
    if case.criteria.loss == "any":
        return gate.model_copy(update={"threshold": "any", "result": Result.SKIPPED})
    if trend is Trend.CONVERGING:
        return gate.model_copy(update={"result": Result.PASS})
    if trend in (Trend.NAN, Trend.DIVERGING):
        return gate.model_copy(update={"result": Result.FAIL})
    advice = next((e.loss.advice for e in case.after if e.loss.advice), None)
    return gate.model_copy(update={"note": advice})


def _locked_gate(case: Case) -> Gate:
    names = case.setting.locked
    return Gate(
        name="locked_knobs",
        value=", ".join(names) if names else "unchanged",
        threshold="unchanged",
        result=Result.FAIL if names else Result.PASS,
    )


def _variable_gate(case: Case) -> Gate:
    changes = case.setting.changes
    if changes > 1 and case.setting.compound:
        result, note = Result.SKIPPED, "a compound change: what it proves is not one cause"
    else:
        result, note = (Result.PASS if changes <= 1 else Result.FAIL), None
    return Gate(name="one_variable", value=str(changes), threshold="1", result=result, note=note)


def _environment_gate(case: Case) -> Gate:
    differences = case.setting.differences
    return Gate(
        name="environment_parity",
        value="; ".join(differences) if differences else "as in the baseline",
        threshold="as in the baseline",
        result=Result.FAIL if differences else Result.PASS,
    )


def _delta_gate(case: Case) -> Gate:
    c = case.criteria
    threshold = f"estimate >= {c.success:g}pp and lower bound > {c.failure:g}pp"
    gate = Gate(name="delta", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    if case.delta is None:
        return gate.model_copy(update={"note": _absent(case)})
    gate = gate.model_copy(update={"value": estimate_text(case.delta, "pp", signed=True)})
    short = short_window(case.criteria, case.before, case.after)
    if short:
        return gate.model_copy(update={"note": _advised(short, case.setting.window_advice)})
    assert case.delta.low is not None and case.delta.high is not None
    if case.delta.value >= c.success and case.delta.low > c.failure:
        return gate.model_copy(update={"result": Result.PASS})
    if case.delta.value < c.failure and case.delta.high < c.success:
        return gate.model_copy(update={"result": Result.FAIL})
    return gate.model_copy(update={"note": "the interval does not decide; more runs would narrow it"})


def _absent(case: Case) -> str:
    """Which run lacks its utilisation, and why."""
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        for e in runs:
            if not _measured(e):
                reasons = [e.window_reason, *(d.reason for d in e.devices)]
                reason = next((r for r in reasons if r), "no utilisation was measured")
                short = e.window is None and "too short" in reason
                where = part if len(runs) == 1 else f"{part}, run {e.run}"
                return f"{where}: {_advised(reason, case.setting.window_advice if short else None)}"
    return "no utilisation was measured"


def _advised(text: str, advice: str | None) -> str:
    return f"{text}; {advice}" if advice else text


def window_total(runs: Sequence[Evidence]) -> float:
    """Seconds of steady window over the runs that have one."""
    return math.fsum(e.window.duration_s for e in runs if e.window and e.utilisation is not None)


def short_window(criteria: Criteria, before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """What is missing to `min_window` in the baseline or in the trial; None where nothing is."""
    for part, runs in (("baseline", before), ("trial", after)):
        total = window_total(runs)
        if total < criteria.min_window:
            count = f"{len(runs)} run{'s' if len(runs) != 1 else ''}"
            said = f"the {part}'s windows sum up to {total:.1f} s over {count}"
            missing = criteria.min_window - total
            return f"{said}, {missing:.1f} s short of min_window ({criteria.min_window:g} s)"
    return None


def _throughput_gate(case: Case) -> Gate:
    wanted = case.criteria.throughput
    threshold = {
        "better": f"estimate >= {BETTER_ESTIMATE:g}x and lower bound > 1x",
        "not_worse": f"upper bound >= {NOT_WORSE_BOUND:g}x",
    }.get(wanted, "any")
    value = estimate_text(case.ratio, "x", digits=2) if case.ratio else UNKNOWN
    gate = Gate(name="throughput", value=value, threshold=threshold, result=Result.UNKNOWN)
    if wanted == "any":
        return gate.model_copy(update={"result": Result.SKIPPED})
    if case.ratio is None:
        return gate.model_copy(update={"note": _no_ratio(case)})
    return gate.model_copy(update={"result": throughput_result(wanted, case.ratio)})


def _no_ratio(case: Case) -> str:
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        without = next((e for e in runs if _rate(e) is None), None)
        if without is not None:
            where = part if len(runs) == 1 else f"{part}, run {without.run}"
            return (
                f"{where}: no step rate in the log; `log: {{step: …}}` in gpudebug.yaml says where steps are"
            )
    units = [sorted({rate[0] for e in runs if (rate := _rate(e))}) for runs in (case.before, case.after)]
    return f"the baseline's log counts {' and '.join(units[0])}, the trial's {' and '.join(units[1])}"


def throughput_result(wanted: str, ratio: Estimate) -> Result:
    """Whether throughput is `better` or `not_worse`."""
    assert ratio.low is not None and ratio.high is not None
    if wanted == "not_worse":
        return Result.FAIL if ratio.high < NOT_WORSE_BOUND else Result.PASS
    if ratio.low > 1 and ratio.value >= BETTER_ESTIMATE:
        return Result.PASS
    return Result.FAIL if ratio.high < BETTER_ESTIMATE else Result.UNKNOWN


def _work_gate(case: Case) -> Gate:
    threshold = f"busy time a step at most {WORK_PASS:g}x"
    gate = Gate(name="work_conserved", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    if case.work is None:
        if case.delta and _idle((*case.before, *case.after)):
            note = "an idle device has no busy time to compare"
            return gate.model_copy(update={"result": Result.SKIPPED, "note": note})
        note = "needs utilisation and step rate of every run of baseline and trial"
        return gate.model_copy(update={"note": note})
    assert case.work.low is not None
    if case.work.value <= WORK_PASS:
        result = Result.PASS
    else:
        result = Result.FAIL if case.work.low > WORK_FAIL else Result.UNKNOWN
    return gate.model_copy(
        update={"value": estimate_text(case.work, "x", digits=2), "result": result},
    )


def _skipped(name: str, threshold: str, note: str) -> Callable[[Case], Gate]:
    gate = Gate(name=name, value=UNKNOWN, threshold=threshold, result=Result.SKIPPED, note=note)
    return lambda _case: gate


GATES: tuple[Callable[[Case], Gate], ...] = (
    _outcome_gate,
    _loss_gate,
    _skipped("loss_parity", "the baseline's loss at equal steps", "not measured in this version"),
    _delta_gate,
    _throughput_gate,
    _work_gate,
    _locked_gate,
    _variable_gate,
    _skipped("change_in_effect", "the change reached the program", "not measured in this version"),
    _skipped("device_to_itself", "no foreign process", "not measured in this version"),
    _environment_gate,
)


def estimate_text(estimate: Estimate, unit: str, *, signed: bool = False, digits: int = 1) -> str:
    """`+33.6pp (95% CI +31.2 to +36.0)`."""
    sign = "+" if signed else ""

    def text(value: float) -> str:
        # Adding 0.0 turns a rounded -0.0 into 0.0.
        return f"{round(value, digits) + 0.0:{sign}.{digits}f}"

    value = f"{text(estimate.value)}{unit}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} (95% CI {text(estimate.low)} to {text(estimate.high)})"
