"""Criteria, baseline evidence and trial evidence -> a verdict with its gates. No model decides."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpudebug.core import stats
from gpudebug.core.models import Estimate, Evidence, Gate, Verdict
from gpudebug.core.words import INFRASTRUCTURE, Outcome, Result, Status, Trend

RULE = "1"
# Throughput: `better` needs a gain that a person would keep; `not_worse` forgives noise.
BETTER_ESTIMATE = 1.03
NOT_WORSE_BOUND = 0.97
# Busy seconds a step stay equal when a stall is removed.
WORK_PASS = 1.15
WORK_FAIL = 1.25
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
class _Case:
    criteria: Criteria
    setting: Setting
    before: tuple[Evidence, ...]
    after: tuple[Evidence, ...]
    delta: Estimate | None = field(default=None)
    ratio: Estimate | None = field(default=None)
    work: Estimate | None = field(default=None)


def judge(
    hypothesis: int,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: Setting,
) -> Verdict:
    """Judge one trial: `before` are the baseline's runs, `after` the trial's, each at least one."""
    case = _measure(_Case(criteria, setting, tuple(before), tuple(after)))
    gates = tuple(gate(case) for gate in _GATES)
    status, why, hollow = _compose(case, gates)
    rates_before, rates_after = _rates(case.before), _rates(case.after)
    return Verdict(
        rule=RULE,
        hypothesis=hypothesis,
        status=status,
        why=why,
        hollow=hollow,
        before=_mean(_utilisations(case.before)),
        after=_mean(_utilisations(case.after)),
        delta=case.delta,
        throughput_before=_mean(rates_before),
        throughput_after=_mean(rates_after),
        throughput_ratio=case.ratio,
        training=training_text(case.after),
        loss=worst_trend(case.after),
        gates=gates,
        notes=_notes(case, gates, hollow),
    )


def _measure(case: _Case) -> _Case:
    before, after = _utilisations(case.before), _utilisations(case.after)
    delta = None
    if before and after:
        errors = [e.standard_error for e in (*case.before, *case.after) if e.standard_error is not None]
        delta = stats.difference(before, after, within=_mean(errors) or 0.0)
    rates = _rates(case.before), _rates(case.after)
    ratio = stats.ratio(*rates) if all(rates) else None
    work = [[e.utilisation / e.steps_per_s for e in arm if _busy(e)] for arm in (case.before, case.after)]  # type: ignore[operator]
    conserved = stats.ratio(*work, prior=WORK_PRIOR) if all(work) else None
    return _Case(case.criteria, case.setting, case.before, case.after, delta, ratio, conserved)


def _utilisations(runs: Sequence[Evidence]) -> list[float]:
    return [e.utilisation for e in runs if e.utilisation is not None]


def _rates(runs: Sequence[Evidence]) -> list[float]:
    return [e.steps_per_s for e in runs if e.steps_per_s]


def _busy(e: Evidence) -> bool:
    return bool(e.utilisation and e.steps_per_s)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


# A program that dies of one of these was ended from outside: by a person, a scheduler, the kernel.
_FOREIGN = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})


def is_infrastructure(e: Evidence) -> bool:
    """Whether the run's end says nothing of the hypothesis: lost device or sampler, interrupted, killed."""
    return e.outcome in INFRASTRUCTURE or (
        e.outcome is Outcome.CRASHED
        and e.signal in _FOREIGN
        and (e.failure is None or e.failure.kind in ("signal", "interrupted"))
    )


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
    line = f": {failed.failure.lines[-1]}" if failed.failure and failed.failure.lines else ""
    return f"FAILED - {failed.outcome}{kind}{line}"


def _outcome_gate(case: _Case) -> Gate:
    failed = next((e for e in case.after if e.outcome is not Outcome.COMPLETED), None)
    value = training_text(case.after).removeprefix("FAILED - ") if failed else str(Outcome.COMPLETED)
    if failed is None:
        result = Result.PASS
    else:
        result = Result.UNKNOWN if is_infrastructure(failed) else Result.FAIL
    return Gate(name="outcome", value=value, threshold="training ends by itself with status 0", result=result)


def _loss_gate(case: _Case) -> Gate:
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


def _locked_gate(case: _Case) -> Gate:
    names = case.setting.locked
    return Gate(
        name="locked_knobs",
        value=", ".join(names) if names else "unchanged",
        threshold="unchanged",
        result=Result.FAIL if names else Result.PASS,
    )


def _variable_gate(case: _Case) -> Gate:
    changes = case.setting.changes
    if changes > 1 and case.setting.compound:
        result, note = Result.SKIPPED, "a compound change: what it proves is not one cause"
    else:
        result, note = (Result.PASS if changes <= 1 else Result.FAIL), None
    return Gate(name="one_variable", value=str(changes), threshold="1", result=result, note=note)


def _environment_gate(case: _Case) -> Gate:
    differences = case.setting.differences
    return Gate(
        name="environment_parity",
        value="; ".join(differences) if differences else "as in the baseline",
        threshold="as in the baseline",
        result=Result.FAIL if differences else Result.PASS,
    )


def _delta_gate(case: _Case) -> Gate:
    c = case.criteria
    threshold = f"estimate >= {c.success:g}pp and lower bound > {c.failure:g}pp"
    gate = Gate(name="delta", value="unknown", threshold=threshold, result=Result.UNKNOWN)
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


def _absent(case: _Case) -> str:
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        if not _utilisations(runs):
            reasons = [e.window_reason or next((d.reason for d in e.devices if d.reason), None) for e in runs]
            reason = next((r for r in reasons if r), "no utilisation was measured")
            return f"{part}: {_advised(reason, case.setting.window_advice if 'window' in reason else None)}"
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
            return f"{said}, min_window is {criteria.min_window:g} s"
    return None


def _throughput_gate(case: _Case) -> Gate:
    wanted = case.criteria.throughput
    threshold = {
        "better": f"estimate >= {BETTER_ESTIMATE:g}x and lower bound > 1x",
        "not_worse": f"upper bound >= {NOT_WORSE_BOUND:g}x",
    }.get(wanted, "any")
    value = estimate_text(case.ratio, "x", digits=2) if case.ratio else "unknown"
    gate = Gate(name="throughput", value=value, threshold=threshold, result=Result.UNKNOWN)
    if wanted == "any":
        return gate.model_copy(update={"result": Result.SKIPPED})
    if case.ratio is None:
        return gate.model_copy(update={"note": "no step rate in the log of baseline or trial"})
    return gate.model_copy(update={"result": _throughput_result(wanted, case.ratio)})


def _throughput_result(wanted: str, ratio: Estimate) -> Result:
    assert ratio.low is not None and ratio.high is not None
    if wanted == "not_worse":
        return Result.FAIL if ratio.high < NOT_WORSE_BOUND else Result.PASS
    if ratio.low > 1 and ratio.value >= BETTER_ESTIMATE:
        return Result.PASS
    return Result.FAIL if ratio.high < BETTER_ESTIMATE else Result.UNKNOWN


def _work_gate(case: _Case) -> Gate:
    threshold = f"busy time a step at most {WORK_PASS:g}x"
    if case.work is None:
        return Gate(
            name="work_conserved",
            value="unknown",
            threshold=threshold,
            result=Result.SKIPPED,
            note="needs utilisation and step rate of baseline and trial",
        )
    assert case.work.low is not None
    if case.work.value <= WORK_PASS:
        result = Result.PASS
    else:
        result = Result.FAIL if case.work.low > WORK_FAIL else Result.UNKNOWN
    return Gate(
        name="work_conserved",
        value=estimate_text(case.work, "x", digits=2),
        threshold=threshold,
        result=result,
    )


def _skipped(name: str, threshold: str, note: str) -> Callable[[_Case], Gate]:
    gate = Gate(name=name, value="unknown", threshold=threshold, result=Result.SKIPPED, note=note)
    return lambda _case: gate


_GATES: tuple[Callable[[_Case], Gate], ...] = (
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


def _compose(case: _Case, gates: Sequence[Gate]) -> tuple[Status, str, bool]:
    """The first rule that matches decides. Returns status, why, hollow."""
    by_name = {g.name: g for g in gates}
    infra = next((e for e in case.after if is_infrastructure(e)), None)
    if infra is not None:
        ending = (
            f"{infra.outcome}, killed from outside" if infra.outcome is Outcome.CRASHED else infra.outcome
        )
        return Status.INVALID, f"{ending}: the machinery failed, not the hypothesis", False
    if by_name["environment_parity"].result is Result.FAIL:
        return Status.INVALID, f"environment differs: {by_name['environment_parity'].value}", False
    for name in ("outcome", "loss", "locked_knobs", "one_variable"):
        if by_name[name].result is Result.FAIL:
            return Status.REJECTED, f"{name.replace('_', ' ')}: {by_name[name].value}", False
    delta = by_name["delta"]
    if delta.result is Result.FAIL:
        return Status.REJECTED, f"delta: {delta.value}", False
    if delta.result is Result.PASS:
        for name in ("throughput", "work_conserved"):
            if by_name[name].result is Result.FAIL:
                why = f"hollow: utilisation rose, {name.replace('_', ' ')} {by_name[name].value}"
                return Status.REJECTED, why, True
    unknown = next((g for g in gates if g.result is Result.UNKNOWN), None)
    if unknown is None:
        return Status.VALIDATED, f"delta {delta.value}, all gates pass", False
    note = f": {unknown.note}" if unknown.note else ""
    return Status.INCONCLUSIVE, f"{unknown.name} is unknown ({unknown.value}){note}", False


def _notes(case: _Case, gates: Sequence[Gate], hollow: bool) -> tuple[str, ...]:
    notes = []
    if hollow:
        notes.append("hollow gain: the device is busier without getting more done")
    delta = next(g for g in gates if g.name == "delta")
    ratio = case.ratio
    if delta.result is not Result.PASS and ratio and _throughput_result("better", ratio) is Result.PASS:
        notes.append(f"improved throughput: {estimate_text(ratio, 'x', digits=2)} without the utilisation")
    return tuple(notes)


def needs_more_runs(
    verdict: Verdict, criteria: Criteria, before: Sequence[Evidence], after: Sequence[Evidence]
) -> bool:
    """Whether one more trial run could still change this verdict."""
    if verdict.status is not Status.INCONCLUSIVE or len(after) >= criteria.max_runs:
        return False
    unknown = {g.name for g in verdict.gates if g.result is Result.UNKNOWN}
    if not unknown <= {"delta", "throughput", "work_conserved"}:
        return False
    if "throughput" in unknown and verdict.throughput_ratio is None:
        return False
    total = window_total(after)
    if verdict.delta is None or total <= 0 or window_total(before) < criteria.min_window:
        return False
    return total / len(after) * criteria.max_runs >= criteria.min_window


def needs_fresh_baseline(verdict: Verdict, criteria: Criteria, after: Sequence[Evidence]) -> bool:
    """Whether the decision is near, so that the next trial run wants a fresh baseline beside it."""
    return verdict.status is Status.INCONCLUSIVE and window_total(after) >= criteria.min_window


def estimate_text(estimate: Estimate, unit: str, *, signed: bool = False, digits: int = 1) -> str:
    """`+33.6pp (95% CI +31.2 to +36.0)`."""
    sign = "+" if signed else ""
    value = f"{estimate.value:{sign}.{digits}f}{unit}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} (95% CI {estimate.low:{sign}.{digits}f} to {estimate.high:{sign}.{digits}f})"
