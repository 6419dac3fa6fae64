"""Criteria, baseline evidence and trial evidence -> a verdict with its gates. No model decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudebug.core.records import Evidence, Gate, Verdict
from gpudebug.core.verdict import load
from gpudebug.core.verdict.cold_cache import fills_cache, is_cold
from gpudebug.core.verdict.gates import (
    GATES,
    SINCE,
    Criteria,
    TrialCase,
    TrialSetting,
    crowded_out,
    estimate_text,
    held_up,
    improvement_text,
    is_infrastructure,
    is_machinery,
    load_unknown,
    mean,
    measure,
    short_window,
    throughput_result,
    training_text,
    utilisations,
    values_of,
    worst_trend,
)
from gpudebug.core.verdict.gates.also import PREFIX, also_gates, also_notes
from gpudebug.core.verdict.gates.count import unfit
from gpudebug.core.verdict.gates.devices import SHOWN
from gpudebug.core.verdict.learning import worst
from gpudebug.core.words import Outcome, Result, Status, Trend

__all__ = [
    "RULE",
    "RULES",
    "Criteria",
    "TrialSetting",
    "is_infrastructure",
    "judge",
    "short_window",
    "training_text",
    "worst_trend",
]

RULE = "5"
RULES = frozenset({"3", "4", RULE})
"""Those that a verdict can be judged by again. The third did not hold log, probe and command together."""


def judge(
    hypothesis: int,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
    rule: str = RULE,
) -> Verdict:
    """Judge one trial: `before` are the baseline's runs, `after` the trial's, each at least one."""
    setting = replace(setting, rule=int(rule))
    case = measure(TrialCase(criteria, setting, tuple(before), tuple(after), hypothesis))
    asked = (gate(case) for gate in GATES if SINCE.get(gate, 0) <= setting.rule)
    gates = _in_spite_of_others(case, (*asked, *also_gates(case)))
    status, why, hollow = _compose(case, gates)
    return Verdict(
        rule=rule,
        hypothesis=hypothesis,
        status=status,
        why=why,
        hollow=hollow,
        before=mean(utilisations(case.before)),
        after=mean(utilisations(case.after)),
        metric=case.metric.name,
        metric_before=case.metric.mean(values_of(case.metric, case.before)),
        metric_after=case.metric.mean(values_of(case.metric, case.after)),
        delta=case.delta,
        throughput_before=mean(case.rates.before),
        throughput_after=mean(case.rates.after),
        throughput_unit=case.rates.unit,
        throughput_ratio=case.ratio,
        training=training_text(case.after),
        loss=worst(case.after, case.learning) if case.learning else worst_trend(case.after),
        gates=gates,
        notes=_notes(case, gates, hollow),
        confirmed=setting.confirmed,
    )


# Gates whose failure means that something else than the hypothesis was measured.
_SPOILT = (
    ("change_in_effect", "the change was not in effect"),
    ("device_to_itself", "the device was shared"),
    ("environment_parity", "environment differs"),
)


def _in_spite_of_others(case: TrialCase, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """The gates, with a pass where others' load differed and the trial is VALIDATED all the same: it met more
    of it, or gained more than the baseline lost by it."""
    device = next(g for g in gates if g.name == "device_to_itself")
    if case.setting.rule < 5 or device.result is not Result.FAIL:
        return gates
    if load.met_more(case.before, case.after):
        note = "the trial met more of them: what it gains in spite of them is no less without"
    elif held_up.outweighed(case):
        note = "the trial gains more than they can have kept the baseline from"
    else:
        return gates
    passed = device.model_copy(update={"result": Result.PASS, "note": note})
    changed = tuple(passed if gate is device else gate for gate in gates)
    return changed if _compose(case, changed)[0] is Status.VALIDATED else gates


def _compose(case: TrialCase, gates: Sequence[Gate]) -> tuple[Status, str, bool]:
    """Status, why, hollow. Figures that others may have made reject nothing."""
    found = _first_rule(case, gates)
    unknown = load_unknown(case)
    if found[0] is Status.REJECTED and unknown is not None and not fails_whatever_load(case, gates):
        return Status.INVALID, f"it is not known whether the load was alike: {unknown}", False
    return found


def fails_whatever_load(case: TrialCase, gates: Sequence[Gate]) -> bool:
    """Whether a gate fails by the program's own doing, whatever else ran.

    A load makes a program slow, so that it may miss its time limit, or learn less in equal time.
    """
    failing = {g.name for g in gates if g.result is Result.FAIL}
    slowed = set()
    if any(e.outcome in _LATE for e in case.after):
        slowed.add("outcome")
    if case.learning is not None and case.trades_work:
        slowed.add("loss_parity")
    return bool(failing & (_WHATEVER_LOAD - slowed))


_LATE = frozenset({Outcome.TIMED_OUT, Outcome.STALLED})
_WHATEVER_LOAD = frozenset({"outcome", "loss", "loss_parity", "locked_knobs", "one_variable"})


def _first_rule(case: TrialCase, gates: Sequence[Gate]) -> tuple[Status, str, bool]:
    """The first rule that matches decides. Returns status, why, hollow."""
    by_name = {g.name: g for g in gates}
    infra = next((e for e in case.after if is_machinery(case, e)), None)
    if infra is not None:
        ending = str(infra.outcome)
        if infra.outcome is Outcome.CRASHED:
            text = training_text([infra]).removeprefix(_FAILED) if case.setting.rule >= 5 else ending
            ending = f"{text}, killed from outside"
        return Status.INVALID, f"{ending}: the machinery failed, not the hypothesis", False
    if (spoilt := _why_spoilt(case, by_name)) is not None:
        return Status.INVALID, spoilt, False
    against = unfit(case) if by_name["throughput"].unexplained else None
    further = [g.name for g in gates if g.name.startswith(PREFIX)]
    # At equal steps that no optimizer made, a loss says nothing.
    forged = case.setting.rule >= 5 and against is not None and against.invalid
    learning = ("loss",) if forged else ("loss", "loss_parity")
    for name in ("outcome", *learning, *further, "locked_knobs", "one_variable"):
        if by_name[name].result is Result.FAIL:
            shown = name if name in further else name.replace("_", " ")
            return Status.REJECTED, f"{shown}: {by_name[name].value}", False
    delta = by_name["delta"]
    if delta.result is Result.FAIL:
        return Status.REJECTED, f"delta: {delta.value}", False
    side_work = by_name.get("side_work")
    if side_work is not None and side_work.result is Result.FAIL:
        return Status.REJECTED, f"hollow: {side_work.value}; {side_work.note}", True
    if against is not None and against.invalid:
        why = f"the log prints steps that no optimizer made: {by_name['throughput'].note}"
        return Status.INVALID, why, False
    if delta.result is Result.PASS:
        for name in ("throughput", "work_conserved", "working_share"):
            if name in by_name and by_name[name].result is Result.FAIL:
                rose = "utilisation rose" if case.metric.points else f"{case.metric.name} is better"
                why = f"hollow: {rose}, {name.replace('_', ' ')} {by_name[name].value}"
                return Status.REJECTED, why, True
    unknown = next((g for g in gates if g.result is Result.UNKNOWN), None)
    if unknown is None:
        return Status.VALIDATED, f"delta {delta.value}, all gates pass", False
    note = f": {unknown.note}" if unknown.note else ""
    return Status.INCONCLUSIVE, f"{unknown.name} is unknown ({unknown.value}){note}", False


def _why_spoilt(case: TrialCase, by_name: Mapping[str, Gate]) -> str | None:
    """Why something else than the hypothesis was measured, behind the trial's own failure if it has one."""
    for name, reason in _spoilt(case):
        gate = by_name[name]
        if gate.result is Result.FAIL and not _failed_whatever(case, by_name, name):
            remedy = f"; {gate.note}" if gate.note else ""
            own = _own_failure(case)
            return f"{f'{own}; besides, ' if own else ''}{reason}: {gate.value}{remedy}"
    return None


def _spoilt(case: TrialCase) -> Sequence[tuple[str, str]]:
    """`_SPOILT` in the order in which it decides.

    The remedy for a load, another baseline, would not keep a run from resuming: that is named first.
    """
    if case.setting.rule >= 5 and case.setting.other_work:
        effect, device, environment = _SPOILT
        return effect, environment, device
    return _SPOILT


def _own_failure(case: TrialCase) -> str | None:
    """How a run of the trial failed, before whatever else is to be said: its class and last line, or that its
    loss is no number. None if none did, and by rules before the fifth."""
    if case.setting.rule < 5:
        return None
    text = training_text(case.after)
    if text.startswith(_FAILED):
        return text.removeprefix(_FAILED)
    lost = next((e for e in case.after if _is_nan(case, e)), None)
    return f"loss {Trend.NAN} in run {lost.run}" if lost is not None else None


_FAILED = "FAILED - "


def _is_nan(case: TrialCase, e: Evidence) -> bool:
    return e.loss.trend is Trend.NAN and case.criteria.loss != "any"


def _failed_whatever(case: TrialCase, by_name: Mapping[str, Gate], spoilt: str) -> bool:
    """Whether the program crashed by itself, or its loss is no number, for which a strange load on the
    machine (`spoilt`) is no excuse.

    One is a device whose memory another process held. A load may make a program too slow for its time limit,
    and another version of a library or another code is no load.
    """
    crashed = any(e.outcome is Outcome.CRASHED for e in case.after)
    crashed = crashed and by_name["outcome"].result is Result.FAIL
    lost = any(_is_nan(case, e) for e in case.after) and by_name["loss"].result is Result.FAIL
    if not (case.setting.loads and (crashed or lost)):
        return False
    if spoilt == "device_to_itself":
        return not any(crowded_out(e) for e in case.after)
    return spoilt == "environment_parity" and not (case.setting.differences or case.ranks.differences)


def _notes(case: TrialCase, gates: Sequence[Gate], hollow: bool) -> tuple[str, ...]:
    results = {g.name: g.result for g in gates}
    notes = [text for text in (case.left_out, load.quota_text(case.before, case.after)) if text]
    if case.metric.points and case.criteria.devices in SHOWN:
        notes.append(f"utilisation is {SHOWN[case.criteria.devices]}: criteria.devices")
    if case.setting.confirmed:
        notes.append(f"confirmed by a person: {case.setting.confirmed}")
    if hollow:
        notes.append(f"hollow gain: {_hollow(case, results)}")
    if is_cold([*case.after[:1], *case.before, *case.after[1:]]):
        notes.append("the trial's first run read far more from disk than the others: a cold page cache")
    if case.setting.loads and (filled := fills_cache(case.after)):
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
    return (*notes, *also_notes(case))


def _hollow(case: TrialCase, results: Mapping[str, Result]) -> str:
    if results.get("side_work") is Result.FAIL:
        return "what was to happen beside the training does not happen any more"
    if case.metric.points:
        return "the device is busier without getting more done"
    if results["throughput"] is Result.FAIL:
        return f"{case.metric.name} is better without getting more done"
    return f"{case.metric.name} is better at the price of more work for the same result"
