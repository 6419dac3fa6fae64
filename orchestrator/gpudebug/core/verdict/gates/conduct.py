"""Whether the trial was fair: one change, nothing locked, the same surroundings."""

from __future__ import annotations

from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.machine import machine_apart
from gpudebug.core.words import Result


def locked_gate(case: TrialCase) -> Gate:
    names = case.setting.locked
    return Gate(
        name="locked_knobs",
        value=", ".join(names) if names else "unchanged",
        threshold="unchanged",
        result=Result.FAIL if names else Result.PASS,
    )


def variable_gate(case: TrialCase) -> Gate:
    changes = case.setting.changes
    if changes > 1 and case.setting.compound:
        result, note = Result.SKIPPED, "a compound change does not prove one cause"
    else:
        result, note = (Result.PASS if changes <= 1 else Result.FAIL), None
    return Gate(name="one_variable", value=str(changes), threshold="1", result=result, note=note)


def environment_gate(case: TrialCase) -> Gate:
    around = machine_apart(case.before, case.after)
    ranks, shared = case.ranks, case.setting.shared
    differences = (*case.setting.differences, *ranks.differences, *around)
    gate = Gate(
        name="environment_parity",
        value="as in the baseline",
        threshold="as in the baseline",
        result=Result.PASS,
        note=f"others measured on these cores too: {'; '.join(shared)}" if shared else None,
    )
    if differences:
        return gate.model_copy(update={"value": "; ".join(differences), "result": Result.FAIL})
    if ranks.unknown is not None:
        return gate.model_copy(update={"value": UNKNOWN, "result": Result.UNKNOWN, "note": ranks.unknown})
    return gate
