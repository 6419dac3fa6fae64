"""Criteria, baseline evidence and trial evidence -> a verdict with its gates. No model decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudebug.core.records import Evidence, Gate, Verdict
from gpudebug.core.verdict import machine
from gpudebug.core.verdict.course import course_of, sides_of
from gpudebug.core.verdict.gates import GATES, RULE, IfFailed, named
from gpudebug.core.verdict.gates.case import TrialCase, measure
from gpudebug.core.verdict.gates.count import unfit
from gpudebug.core.verdict.gates.delta import PREFIX, also_gates, also_notes
from gpudebug.core.verdict.gates.figures import SHOWN, estimate_text, improvement_text, throughput_result
from gpudebug.core.verdict.gates.outcome import (
    crowded_out,
    is_machinery,
    training_text,
    worst_trend,
)
from gpudebug.core.verdict.gates.setting import Criteria, TrialSetting
from gpudebug.core.verdict.phases import by_phase
from gpudebug.core.verdict.unlike import fills_cache, is_cold
from gpudebug.core.verdict.work import worst
from gpudebug.core.words import LOST_TREE, OWN_CODE, Outcome, Result, Status, Trend


def judge(
    hypothesis: int,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
) -> Verdict:
    """Judge one trial: `before` are the baseline's runs, `after` the trial's, each at least one."""
    return judge_case(measure(TrialCase(criteria, setting, tuple(before), tuple(after), hypothesis)))


def judge_case(case: TrialCase) -> Verdict:
    """Judge a trial that is measured."""
    gates = (*(rule.ask(case) for rule in GATES.values()), *also_gates(case))
    status, why, hollow = _compose(case, gates)
    shown = sides_of(case)
    return Verdict(
        rule=RULE,
        hypothesis=case.number,
        status=status,
        why=why,
        hollow=hollow,
        before=shown.utilisation[0],
        after=shown.utilisation[1],
        metric=case.metric.name,
        metric_before=shown.metric[0],
        metric_after=shown.metric[1],
        delta=case.delta,
        throughput_before=shown.throughput[0],
        throughput_after=shown.throughput[1],
        throughput_unit=case.rates.unit,
        throughput_ratio=case.ratio,
        training=training_text(case.after),
        loss=worst(case.after, case.learning) if case.learning else worst_trend(case.after),
        gates=gates,
        notes=_notes(case, gates, hollow),
        confirmed=case.setting.confirmed,
        more=case.setting.more,
        course=course_of(case),
    )


def _why_void(run: Evidence) -> str:
    """Return why a run that the machinery, or what it left behind, made void says nothing."""
    if run.reason is not None and run.reason.startswith((LOST_TREE, OWN_CODE)):
        return run.reason
    ending = str(run.outcome)
    if run.outcome is Outcome.CRASHED:
        ending = f"{training_text([run]).removeprefix(_FAILED)}, killed from outside"
    return f"{ending}: the machinery failed, not the hypothesis"


def _compose(case: TrialCase, gates: Sequence[Gate]) -> tuple[Status, str, bool]:
    """Status, why, hollow: the first rule that matches decides."""
    by_name = {g.name: g for g in gates}
    infra = next((e for e in case.after if is_machinery(e)), None)
    if infra is not None:
        return Status.INVALID, _why_void(infra), False
    if (spoilt := _why_spoilt(case, by_name)) is not None:
        return Status.INVALID, spoilt, False
    against = unfit(case) if by_name["throughput"].unexplained else None
    # At equal steps that no optimizer made, a loss says nothing.
    forged = against is not None and against.invalid
    for name in named(IfFailed.REFUSED):
        if by_name[name].result is Result.FAIL and not (forged and name == "loss_parity"):
            return Status.REJECTED, f"{name.replace('_', ' ')}: {by_name[name].value}", False
    delta = by_name["delta"]
    if delta.result is Result.FAIL:
        return Status.REJECTED, f"delta: {delta.value}", False
    side_work = by_name["side_work"]
    if side_work.result is Result.FAIL:
        return Status.REJECTED, f"hollow: {side_work.value}; {side_work.note}", True
    if against is not None and against.invalid:
        why = f"the log prints steps that no optimizer made: {by_name['throughput'].note}"
        return Status.INVALID, why, False
    if delta.result is Result.PASS:
        hollow = named(IfFailed.HOLLOW)
        beside = (g for g in gates if g.name in hollow or g.name.startswith(PREFIX))
        worse = next((g for g in beside if g.result is Result.FAIL), None)
        if worse is not None and worse.name in hollow:
            rose = "utilisation rose" if case.metric.points else f"{case.metric.name} is better"
            return Status.REJECTED, f"hollow: {rose}, {worse.name.replace('_', ' ')} {worse.value}", True
        if worse is not None:
            return Status.REJECTED, f"{worse.name}: {worse.value}", False
    unknown = next((g for g in gates if g.result is Result.UNKNOWN), None)
    if unknown is None:
        return Status.VALIDATED, f"delta {delta.value}, all gates pass", False
    note = f": {unknown.note}" if unknown.note else ""
    return Status.INCONCLUSIVE, f"{unknown.name} is unknown ({unknown.value}){note}", False


def _why_spoilt(case: TrialCase, by_name: Mapping[str, Gate]) -> str | None:
    """Why something else than the hypothesis was measured, behind the trial's own failure if it has one."""
    spoilt = named(IfFailed.SPOILT)
    if case.setting.other_work:
        # Another baseline, the remedy for a shared device, would not keep a run from resuming.
        spoilt.sort(key=lambda name: name == "device_to_itself")
    for name in spoilt:
        gate = by_name[name]
        if gate.result is Result.FAIL and not _failed_whatever(case, by_name, name):
            remedy = f"; {gate.note}" if gate.note else ""
            own = _own_failure(case)
            return f"{f'{own}; besides, ' if own else ''}{GATES[name].spoilt}: {gate.value}{remedy}"
    return None


def _own_failure(case: TrialCase) -> str | None:
    """Return how a run of the trial failed, before whatever else is to be said: its class and last line, or
    that its loss is no number. None if none did."""
    text = training_text(case.after)
    if text.startswith(_FAILED):
        return text.removeprefix(_FAILED)
    lost = next((e for e in case.after if _is_nan(case, e)), None)
    return f"loss {Trend.NAN} in run {lost.run}" if lost is not None else None


_FAILED = "FAILED - "


def _is_nan(case: TrialCase, e: Evidence) -> bool:
    return e.loss.trend is Trend.NAN and case.criteria.loss != "any"


def _failed_whatever(case: TrialCase, by_name: Mapping[str, Gate], spoilt: str) -> bool:
    """Tell whether the program crashed by itself, or its loss is no number, for which a stranger on the
    device or another clock (`spoilt`) is no excuse.

    One is a device whose memory another process held; another version of a library or another code is one.
    """
    crashed = any(e.outcome is Outcome.CRASHED for e in case.after)
    crashed = crashed and by_name["outcome"].result is Result.FAIL
    lost = any(_is_nan(case, e) for e in case.after) and by_name["loss"].result is Result.FAIL
    if not (crashed or lost):
        return False
    if spoilt == "device_to_itself":
        return not any(crowded_out(e) for e in case.after)
    return spoilt == "environment_parity" and not (case.setting.differences or case.ranks.differences)


def _notes(case: TrialCase, gates: Sequence[Gate], hollow: bool) -> tuple[str, ...]:
    results = {g.name: g.result for g in gates}
    quota = machine.quota_text(case.before, case.after)
    notes = [quota] if quota else []
    if case.metric.points and case.criteria.devices in SHOWN:
        notes.append(f"utilisation is {SHOWN[case.criteria.devices]}: criteria.devices")
    if case.setting.confirmed:
        notes.append(f"confirmed by a person: {case.setting.confirmed}")
    if hollow:
        notes.append(f"hollow gain: {_hollow(case, results)}")
    if is_cold([*case.after[:1], *case.before, *case.after[1:]]):
        notes.append("the trial's first run read far more from disk than the others: a cold page cache")
    if filled := fills_cache(case.after):
        notes.append(f"the trial's first run is unlike its others: {filled}")
    trained = results["outcome"] is Result.PASS and results["loss"] is not Result.FAIL
    faster = case.ratio is not None and throughput_result("better", case.ratio) is Result.PASS
    faster = faster and not case.metric.throughput
    if trained and faster and case.ratio and case.delta and case.delta.value < case.criteria.success:
        figure, change = (
            estimate_text(case.ratio, "x", digits=2),
            improvement_text(case.metric, case.delta),
        )
        what = "utilisation changed" if case.metric.points else f"{case.metric.name} improved"
        notes.append(f"improved throughput: {figure}, while {what} by {change}")
    return (*notes, *also_notes(case), *by_phase(case))


def _hollow(case: TrialCase, results: Mapping[str, Result]) -> str:
    if results.get("side_work") is Result.FAIL:
        return "evaluation, checkpoints or logging no longer happen"
    if case.metric.points:
        return "the device is busier without getting more done"
    if results["throughput"] is Result.FAIL:
        return f"{case.metric.name} is better without getting more done"
    return f"{case.metric.name} is better at the price of more work for the same result"
