"""Whether what the user wants beside the training still happens: evaluations, checkpoints, log lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.command.cadence import EVALUATION, KINDS, PLURAL
from gpudebug.core.inside.probe.counts import evaluated_batches
from gpudebug.core.records import Evidence, Gate
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.words import Outcome, Result

NAME = "side_work"
THRESHOLD = "evaluations, checkpoints and log lines do not vanish"
_ADVICE = "make them rarer instead: at least two are to remain in the run"
_UNTOLD = "the change sets how often, and its value says nothing: set a number of which at least two remain"
_UNSEEN = "gpudebug ended the run before it showed one: let runs end by themselves (protocol: {run_for: end})"
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
    gate = Gate(name=NAME, value=UNKNOWN, threshold=THRESHOLD, result=Result.SKIPPED)
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
    work = case.setting.side_work
    before = list(zip(case.before, _plans(work.before, case.before), strict=True))
    after = list(zip(case.after, _plans(work.after, case.after), strict=True))
    had = max((_count(*run, kind) or 0 for run in before), default=0)
    if not had:
        return _KindKept(Result.SKIPPED)
    results = {_in_run(case, *run, kind) for run in after}
    if Result.FAIL in results:
        return _KindKept(Result.FAIL, f"{PLURAL[kind]} {had}, then none", _ADVICE)
    left = min((count for run in after if (count := _count(*run, kind)) is not None), default=None)
    if Result.UNKNOWN in results:
        note = _UNSEEN if any(_seen(run, kind) for run in case.before) else _UNTOLD
        return _KindKept(Result.UNKNOWN, f"{PLURAL[kind]} {had}, then unknown", note)
    return _KindKept(Result.PASS, f"{PLURAL[kind]} {had}, then {left}") if left else _KindKept(Result.SKIPPED)


def _in_run(case: TrialCase, e: Evidence, plan: Mapping[str, int], kind: str) -> Result:
    """Whether a run of the trial has any, where the baseline has."""
    if _seen(e, kind):
        return Result.PASS
    if plan.get(kind) == 0:
        return Result.FAIL
    shown, touched = any(_seen(run, kind) for run in case.before), kind in case.setting.side_work.touched
    if not shown:
        # The settings alone say that there are any: `--eval_interval=null` does not say if some remain.
        return Result.UNKNOWN if touched and kind not in plan else Result.PASS
    if e.outcome is Outcome.COMPLETED:
        # A whole run that shows none has none, if the program is one that shows them.
        return Result.FAIL
    due = _due(case, e, plan, kind)
    if due is not None and due >= CERTAIN:
        return Result.UNKNOWN
    return Result.UNKNOWN if touched and not plan.get(kind) else Result.PASS


def _due(case: TrialCase, e: Evidence, plan: Mapping[str, int], kind: str) -> float | None:
    """How many were due in a run that was ended: as often as in the baseline, as the settings changed it."""
    steps = _counted(e)
    plans = _plans(case.setting.side_work.before, case.before)
    found = []
    for run, usual in zip(case.before, plans, strict=True):
        made, seen = _counted(run), _seen(run, kind)
        if not made or not seen or run.step_unit != e.step_unit:
            continue
        rarer = plan[kind] / usual[kind] if usual.get(kind) and kind in plan else 1.0
        found.append(seen / made * rarer)
    return min(found) * steps if found and steps is not None else None


def _counted(e: Evidence) -> int | None:
    """How far the log of a run counts."""
    ends = e.first_count, e.last_count
    return ends[1] - ends[0] if ends[0] is not None and ends[1] is not None else None


def _count(e: Evidence, plan: Mapping[str, int], kind: str) -> int | None:
    """How many a run has: as it shows them, else as it is configured."""
    return _seen(e, kind) or plan.get(kind)


def _seen(e: Evidence, kind: str) -> int:
    shown = (e.occasions or {}).get(kind, 0)
    return shown or (evaluated_batches(e.probe) if kind == EVALUATION else 0)


def _plans(plans: Sequence[Mapping[str, int]], runs: Sequence[Evidence]) -> Sequence[Mapping[str, int]]:
    return plans or [{} for _ in runs]
