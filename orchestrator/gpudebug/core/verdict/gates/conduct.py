"""Whether the trial was fair: one change in effect, nothing locked, side work done, the same surroundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpudebug.core.command.cadence import EVALUATION, KINDS, LOG, PLURAL
from gpudebug.core.inside.probe.counts import evaluated_batches
from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics.across import name
from gpudebug.core.verdict import machine
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.machine import machine_apart
from gpudebug.core.words import Outcome, Result, counted, is_stand_in


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


REACHED = "the change reached the program"
ADVICE = "take paths to that other checkout out of the program, its .pth files and PYTHONPATH"


def effect_gate(case: TrialCase) -> Gate:
    """Fails if the program imported another checkout, or printed that it runs without the change."""
    gate = Gate(name="change_in_effect", value=UNKNOWN, threshold=REACHED, result=Result.SKIPPED)
    setting = case.setting
    if setting.elsewhere:
        value = "; ".join(setting.elsewhere)
        return gate.model_copy(update={"value": value, "result": Result.FAIL, "note": ADVICE})
    if setting.effect is None:
        return gate.model_copy(update={"note": "nothing was changed"})
    value = setting.effect.value or UNKNOWN
    return gate.model_copy(
        update={"value": value, "result": setting.effect.result, "note": setting.effect.note}
    )


ALONE = "no other process on the device"


def device_gate(case: TrialCase) -> Gate:
    """Fails if another process computed on the device in any run's window. A run that cannot tell makes it
    skipped. What others took of the cores moves the level, and is no reason to doubt."""
    gate = Gate(name="device_to_itself", value=UNKNOWN, threshold=ALONE, result=Result.SKIPPED)
    shared = [text for part, runs in _sides(case) for e in runs if (text := _shared(part, e))]
    if shared:
        value = "; ".join(shared[:3])
        return gate.model_copy(update={"value": value, "result": Result.FAIL, "note": _remedy(case)})
    if untold := _untold(case):
        return gate.model_copy(update={"note": untold})
    return gate.model_copy(
        update={"value": "alone", "result": Result.PASS, "note": machine.others_text(case.before, case.after)}
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
            column = "foreign_cpu" if all(is_stand_in(d.uuid) for d in e.devices) else "foreign_procs"
            if getattr(e.conditions, column) is None:
                reason = e.missing.get(column, "its samples do not count other processes")
                return f"not checkable in {part} run {e.run}: {reason}"
    return None


NAME = "side_work"
AS_CONFIGURED = "evaluations, checkpoints and log lines do not vanish"
_ADVICE = "make them rarer instead: at least two are to remain in the run"
_UNTOLD = "cannot tell how often this still happens: set an interval that leaves at least two in the run"
_UNSEEN = "gpudebug ended the run before it showed one: let runs end by themselves (protocol: {run_for: end})"
_EMPTY = "the log shows evaluations, but the probe saw no batch of one"
_CODE = "the change is in code about them, and no run shows one: print a line for each"
# So many are due in a window that one of them is in it, whenever it began.
CERTAIN = 3


@dataclass(frozen=True, slots=True)
class _KindKept:
    """What became of one kind; `value` is None if the baseline has none of it, `note` is what to do."""

    result: Result
    value: str | None = None
    note: str | None = None


def side_work_gate(case: TrialCase) -> Gate:
    """Fails if one of them falls from some to none. Skipped if the baseline has none, or did not count.

    What the log shows decides; where it shows none, what the settings say of the planned length. A run whose
    window was planned short may have none in it.
    """
    gate = Gate(name=NAME, value=UNKNOWN, threshold=AS_CONFIGURED, result=Result.SKIPPED)
    if any(e.occasions is None for e in (*case.before, *case.after)):
        return gate.model_copy(update={"note": "they were not counted in every run"})
    found = [each for kind in KINDS if (each := _kept(case, kind)).value is not None]
    if not found:
        return gate.model_copy(update={"note": "the baseline shows none of them"})
    for result in (Result.FAIL, Result.UNKNOWN):
        worst = [each for each in found if each.result is result]
        if worst:
            value, note = "; ".join(each.value or "" for each in worst), worst[0].note
            return gate.model_copy(update={"value": value, "result": result, "note": note})
    value = "; ".join(each.value for each in found if each.value)
    return gate.model_copy(update={"value": value, "result": Result.PASS})


def _kept(case: TrialCase, kind: str) -> _KindKept:
    before, after = _settings(case, kind)
    had = max((count or 0 for count in map(_count, before)), default=0)
    if not had:
        return _KindKept(Result.SKIPPED)
    if kind == EVALUATION and _emptied(case):
        return _KindKept(Result.UNKNOWN, f"{PLURAL[kind]} {had}, then unknown", _EMPTY)
    results = {_in_run(case, run, before, after, kind) for run in after}
    if Result.FAIL in results:
        return _KindKept(Result.FAIL, f"{PLURAL[kind]} {had}, then none", _ADVICE)
    left = min((count for run in after if (count := _count(run)) is not None), default=None)
    if Result.UNKNOWN in results:
        shown, code = any(run.seen for run in before), kind in case.setting.side_work.in_code
        note = _UNSEEN if shown else _CODE if code else _UNTOLD
        return _KindKept(Result.UNKNOWN, f"{PLURAL[kind]} {had}, then unknown", note)
    return _KindKept(Result.PASS, f"{PLURAL[kind]} {had}, then {left}") if left else _KindKept(Result.SKIPPED)


@dataclass(frozen=True, slots=True)
class _KindInRun:
    """A run, how many of a kind it shows, and how many it has over its planned length by its settings."""

    run: Evidence
    seen: int
    planned: int | None


def _settings(case: TrialCase, kind: str) -> tuple[list[_KindInRun], list[_KindInRun]]:
    """Both sides. Settings that plan none where the baseline shows some are not what it goes by."""
    by_loss = kind == LOG and all(e.loss.points for e in case.before)
    work = case.setting.side_work

    def side(runs: Sequence[Evidence], plans: Sequence[Mapping[str, int]]) -> list[_KindInRun]:
        pairs = zip(runs, plans or [{} for _ in runs], strict=True)
        return [
            _KindInRun(e, 0 if by_loss and not e.loss.points else _seen(e, kind), plan.get(kind))
            for e, plan in pairs
        ]

    before, after = side(case.before, work.before), side(case.after, work.after)
    if any(one.planned == 0 and one.seen for one in before):
        before, after = ([replace(one, planned=None) for one in runs] for runs in (before, after))
    return before, after


def _emptied(case: TrialCase) -> bool:
    """Tell whether the trial shows evaluations, of which the probe sees batches in the baseline alone."""
    old, new = ([e.probe for e in runs if e.probe is not None] for runs in (case.before, case.after))
    shown = any((e.occasions or {}).get(EVALUATION) for e in case.after)
    known = shown and bool(old and new)
    return known and all(map(evaluated_batches, old)) and not any(map(evaluated_batches, new))


def _in_run(
    case: TrialCase, one: _KindInRun, before: Sequence[_KindInRun], after: Sequence[_KindInRun], kind: str
) -> Result:
    """Tell whether a run of the trial has any, where the baseline has."""
    if one.seen:
        return Result.PASS
    if one.planned == 0:
        return Result.FAIL
    work = case.setting.side_work
    if not any(run.seen for run in before):
        # The settings alone say that there are any: `--eval_interval=null` does not say if some remain.
        unsaid = one.planned is None and kind in work.touched
        return Result.UNKNOWN if unsaid or (kind in work.in_code and _planned_due(one) >= 1) else Result.PASS
    if one.run.outcome is Outcome.COMPLETED:
        # A whole run that shows none has none, if the program is one that shows them.
        return Result.FAIL
    if any(run.seen for run in after):
        # All runs of the trial are of one command and one code.
        return Result.PASS
    if kind not in work.touched | work.in_code:
        return Result.UNKNOWN if _certain(one, before) or _due(one, before) >= CERTAIN else Result.PASS
    # Settings say when each run has its first; what code does now only the runs together show.
    due = sum(_due(run, before) for run in after) if kind in work.in_code else _due(one, before)
    return Result.PASS if one.planned and due < 1 else Result.UNKNOWN


def _planned_due(one: _KindInRun) -> float:
    """Return how many were due in what a run made, by its settings; all of them if its share is not known."""
    made, total = _progress(one.run), one.run.total_steps
    known = made is not None and total and one.run.step_unit == "step"
    share = min(1.0, (made or 0) / (total or 1)) if known else 1.0
    return (one.planned or 0) * (1.0 if one.run.outcome is Outcome.COMPLETED else share)


def _due(one: _KindInRun, before: Sequence[_KindInRun]) -> float:
    """How many were due in a run that was ended: as often as in the baseline, as the settings changed it."""
    return min((_rarer(one, run) * _spans(one, run) * run.seen for run in before if run.seen), default=0.0)


def _certain(one: _KindInRun, before: Sequence[_KindInRun]) -> bool:
    """Tell whether at least one was due in a run that was ended, if they come at equal intervals.

    So many of them in a run of the baseline are no further apart than its length over one less.
    """
    return all(_rarer(one, run) * _spans(one, run) * (run.seen - 1) >= 1 for run in before)


def _spans(one: _KindInRun, usual: _KindInRun) -> float:
    """Return how many times as long a run is, in steps or in time: some is done every ten minutes."""
    ours, theirs = one.run, usual.run
    pairs = [(ours.duration_s, theirs.duration_s)]
    if ours.step_unit == theirs.step_unit:
        pairs.append((_progress(ours), _progress(theirs)))
    return min((mine / other for mine, other in pairs if mine is not None and other), default=0.0)


def _rarer(one: _KindInRun, usual: _KindInRun) -> float:
    return one.planned / usual.planned if one.planned is not None and usual.planned else 1.0


def _progress(e: Evidence) -> int | None:
    """Return how far the log of a run counts."""
    ends = e.first_count, e.last_count
    return ends[1] - ends[0] if ends[0] is not None and ends[1] is not None else None


def _count(one: _KindInRun) -> int | None:
    """Return how many a run has: as it shows them, else as it is configured."""
    return one.seen or one.planned


def _seen(e: Evidence, kind: str) -> int:
    shown = (e.occasions or {}).get(kind, 0)
    return shown or (evaluated_batches(e.probe) if kind == EVALUATION else 0)
