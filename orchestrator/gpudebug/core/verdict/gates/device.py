"""Whether the device, and the cores that feed it, were the run's own."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.samples.window import SHARED
from gpudebug.core.statistics.across import name
from gpudebug.core.verdict import load
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.words import Result, counted

THRESHOLD = "no other process on the device"
# Rules 3 and 4. Others' use of the run's cores, in percent: sides that differ by less were disturbed alike.
APART = 25.0
# Others' use of the cores, in percent, that is printed where it did no harm.
PRINTED = 25.0
_CPU = "CPU"


def device_gate(case: TrialCase) -> Gate:
    """Fails if another process computed on the device in any run's window, or if runs waited for their cores
    because of others, and not alike on both sides. A run that cannot tell makes it skipped."""
    gate = Gate(name="device_to_itself", value=UNKNOWN, threshold=THRESHOLD, result=Result.SKIPPED)
    named = case.setting.rule >= 5
    shared = [text for part, runs in _sides(case) for e in runs if (text := _shared(part, e, named))]
    busy, alike = (_waiting if case.setting.loads else _busy_cores)(case)
    if shared or busy:
        return gate.model_copy(
            update={
                "value": "; ".join([*shared[:3], *([busy] if busy else [])]),
                "result": Result.FAIL,
                "note": _remedy(case),
            }
        )
    untold = _untold(case) or load_unknown(case)
    if untold:
        return gate.model_copy(update={"note": untold})
    return gate.model_copy(update={"value": alike or "alone", "result": Result.PASS})


def _sides(case: TrialCase) -> tuple[tuple[str, Sequence[Evidence]], ...]:
    return ("baseline", case.before), ("trial", case.after)


def _shared(part: str, e: Evidence, named: bool) -> str | None:
    count, share = e.conditions.foreign_procs, e.conditions.foreign_share
    if not count:
        return None
    on = e.conditions.foreign_on
    uuid = e.conditions.foreign_uuid
    node = next((d.node for d in e.devices if d.uuid == uuid), None)
    shown = name({"index": on, "uuid": uuid, "node": node})
    where = shown if named and on is not None else "the device"
    others = counted(count, "other process", "other processes")
    return f"{others} on {where} in {part} run {e.run}, {share or 0:.0%} of the time"


def _remedy(case: TrialCase) -> str | None:
    """What helps where the baseline is what was disturbed: another trial would meet the same one."""
    loads = [_mean_load(runs) or 0.0 for _, runs in _sides(case)]
    if any(e.conditions.foreign_procs for e in case.before) or loads[0] > max(SHARED, loads[1]):
        return "run `gpudebug baseline` to record the baseline again"
    return None


def _mean_load(runs: Sequence[Evidence]) -> float | None:
    """What others used of the cores, in percent; None if unknown."""
    known = [e.conditions.foreign_cpu for e in runs if e.conditions.foreign_cpu is not None]
    return sum(known) / len(known) if known else None


def _busy_cores(case: TrialCase) -> tuple[str | None, str | None]:
    """(why the sides are not comparable, what load both had)."""
    before, after = (_mean_load(runs) for _, runs in _sides(case))
    if before is None or after is None or max(before, after) <= SHARED:
        return None, None
    text = f"other processes used {before:.0f}% of the cores in the baseline, {after:.0f}% in the trial"
    return (text, None) if abs(before - after) > APART else (None, f"{text}: equal, but noisy")


def _waiting(case: TrialCase) -> tuple[str | None, str | None]:
    """(why the sides are not comparable, what load both had)."""
    alike = load.comparable(case.before, case.after)
    if alike is None:
        return None, None
    used = [_mean_load(runs) for _, runs in _sides(case)]
    if used[0] is None or used[1] is None:
        return None, None
    text = f"other processes used {used[0]:.0f}% of the cores in the baseline, {used[1]:.0f}% in the trial"
    shares = [load.share_text(runs) for _, runs in _sides(case)]
    if None not in shares:
        text += f", and kept the runs from {shares[0]} and {shares[1]} of their CPU time"
    if not any(load.disturbed(e) for e in (*case.before, *case.after)):
        return None, f"alone enough: {text}" if max(used[0], used[1]) > PRINTED else None
    if alike:
        return None, f"{text}: equal, but noisy"
    wanted = load.demand_text(case.before, case.after)
    return f"{text}; {wanted}" if wanted else text, None


def load_unknown(case: TrialCase) -> str | None:
    """Why it is not known that both sides met a like load, though a run waited for others; else None."""
    if not case.setting.loads or load.comparable(case.before, case.after) is not None:
        return None
    return load.unknown_text(case.before, case.after)


def _untold(case: TrialCase) -> str | None:
    """Say why other processes could not be counted; None if every run counted them."""
    for part, runs in _sides(case):
        for e in runs:
            column = "foreign_cpu" if all(d.uuid == _CPU for d in e.devices) else "foreign_procs"
            if getattr(e.conditions, column) is None:
                reason = e.missing.get(column, "its samples do not count other processes")
                return f"not checkable in {part} run {e.run}: {reason}"
    return None
