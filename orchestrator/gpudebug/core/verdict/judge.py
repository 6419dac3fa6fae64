"""Criteria, baseline evidence and trial evidence -> a verdict with its gates. No model decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudebug.core.records import Evidence, Gate, Verdict
from gpudebug.core.verdict.cold_cache import is_cold
from gpudebug.core.verdict.gates import (
    GATES,
    Criteria,
    TrialCase,
    TrialSetting,
    estimate_text,
    improvement_text,
    is_infrastructure,
    mean,
    measure,
    short_window,
    throughput_result,
    training_text,
    utilisations,
    values_of,
    worst_trend,
)
from gpudebug.core.verdict.gates.count import unfit
from gpudebug.core.words import Outcome, Result, Status

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

RULE = "4"
RULES = frozenset({"3", RULE})
"""Those that a verdict can be judged by again; the third did not hold log, probe and command together."""


def judge(
    hypothesis: int,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
    rule: str = RULE,
) -> Verdict:
    """Judge one trial: `before` are the baseline's runs, `after` the trial's, each at least one."""
    setting = replace(setting, counted=setting.counted and rule == RULE)
    case = measure(TrialCase(criteria, setting, tuple(before), tuple(after), hypothesis))
    gates = tuple(gate(case) for gate in GATES)
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
        loss=worst_trend(case.after),
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


def _compose(case: TrialCase, gates: Sequence[Gate]) -> tuple[Status, str, bool]:
    """The first rule that matches decides. Returns status, why, hollow."""
    by_name = {g.name: g for g in gates}
    infra = next((e for e in case.after if is_infrastructure(e)), None)
    if infra is not None:
        ending = (
            f"{infra.outcome}, killed from outside" if infra.outcome is Outcome.CRASHED else infra.outcome
        )
        return Status.INVALID, f"{ending}: the machinery failed, not the hypothesis", False
    for name, reason in _SPOILT:
        gate = by_name[name]
        if gate.result is Result.FAIL:
            remedy = f"; {gate.note}" if gate.note else ""
            return Status.INVALID, f"{reason}: {gate.value}{remedy}", False
    for name in ("outcome", "loss", "loss_parity", "locked_knobs", "one_variable"):
        if by_name[name].result is Result.FAIL:
            return Status.REJECTED, f"{name.replace('_', ' ')}: {by_name[name].value}", False
    delta = by_name["delta"]
    if delta.result is Result.FAIL:
        return Status.REJECTED, f"delta: {delta.value}", False
    against = unfit(case) if by_name["throughput"].unexplained else None
    if against is not None and against.invalid:
        why = f"the log prints steps that no optimizer made: {by_name['throughput'].note}"
        return Status.INVALID, why, False
    if delta.result is Result.PASS:
        for name in ("throughput", "work_conserved"):
            if by_name[name].result is Result.FAIL:
                rose = "utilisation rose" if case.metric.points else f"{case.metric.name} is better"
                why = f"hollow: {rose}, {name.replace('_', ' ')} {by_name[name].value}"
                return Status.REJECTED, why, True
    unknown = next((g for g in gates if g.result is Result.UNKNOWN), None)
    if unknown is None:
        return Status.VALIDATED, f"delta {delta.value}, all gates pass", False
    note = f": {unknown.note}" if unknown.note else ""
    return Status.INCONCLUSIVE, f"{unknown.name} is unknown ({unknown.value}){note}", False


def _notes(case: TrialCase, gates: Sequence[Gate], hollow: bool) -> tuple[str, ...]:
    results = {g.name: g.result for g in gates}
    notes = []
    if case.setting.confirmed:
        notes.append(f"confirmed by a person: {case.setting.confirmed}")
    if hollow:
        notes.append(f"hollow gain: {_hollow(case, results)}")
    if is_cold([*case.after[:1], *case.before, *case.after[1:]]):
        notes.append("the trial's first run read far more from disk than the others: a cold page cache")
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
    return tuple(notes)


def _hollow(case: TrialCase, results: Mapping[str, Result]) -> str:
    if case.metric.points:
        return "the device is busier without getting more done"
    if results["throughput"] is Result.FAIL:
        return f"{case.metric.name} is better without getting more done"
    return f"{case.metric.name} is better at the price of more work for the same result"
