"""Whether the device was the run's own."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics.across import name
from gpudebug.core.verdict import others
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.words import Result, counted

THRESHOLD = "no other process on the device"
_CPU = "CPU"


def device_gate(case: TrialCase) -> Gate:
    """Fails if another process computed on the device in any run's window. A run that cannot tell makes it
    skipped. What others took of the cores moves the level, and is no reason to doubt."""
    gate = Gate(name="device_to_itself", value=UNKNOWN, threshold=THRESHOLD, result=Result.SKIPPED)
    shared = [text for part, runs in _sides(case) for e in runs if (text := _shared(part, e))]
    if shared:
        value = "; ".join(shared[:3])
        return gate.model_copy(update={"value": value, "result": Result.FAIL, "note": _remedy(case)})
    if untold := _untold(case):
        return gate.model_copy(update={"note": untold})
    return gate.model_copy(
        update={"value": "alone", "result": Result.PASS, "note": others.text(case.before, case.after)}
    )


def _sides(case: TrialCase) -> tuple[tuple[str, Sequence[Evidence]], ...]:
    return ("baseline", case.before), ("trial", case.after)


def _shared(part: str, e: Evidence) -> str | None:
    count, share = e.conditions.foreign_procs, e.conditions.foreign_share
    if not count:
        return None
    on = e.conditions.foreign_on
    uuid = e.conditions.foreign_uuid
    node = next((d.node for d in e.devices if d.uuid == uuid), None)
    shown = name({"index": on, "uuid": uuid, "node": node})
    where = shown if on is not None else "the device"
    strangers = counted(count, "other process", "other processes")
    return f"{strangers} on {where} in {part} run {e.run}, {share or 0:.0%} of the time"


def _remedy(case: TrialCase) -> str | None:
    """Return what helps where the baseline is what was disturbed: another trial would meet the same one."""
    if any(e.conditions.foreign_procs for e in case.before):
        return "run `gpudebug baseline` to record the baseline again"
    return None


def _untold(case: TrialCase) -> str | None:
    """Say why other processes could not be counted; None if every run counted them."""
    for part, runs in _sides(case):
        for e in runs:
            column = "foreign_cpu" if all(d.uuid == _CPU for d in e.devices) else "foreign_procs"
            if getattr(e.conditions, column) is None:
                reason = e.missing.get(column, "its samples do not count other processes")
                return f"not checkable in {part} run {e.run}: {reason}"
    return None
