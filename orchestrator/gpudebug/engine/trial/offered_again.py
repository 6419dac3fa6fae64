"""A REJECTED that the next run of the baseline contradicts: decided again at no cost, and offered again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core import progress
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Terms, Verdict
from gpudebug.core.verdict.gates import RULE
from gpudebug.core.verdict.gates.case import UNKNOWN
from gpudebug.core.words import Result, Status
from gpudebug.edges import store
from gpudebug.edges.store import run_number
from gpudebug.engine.campaign.campaign import Baselines, Entries, History, Setup
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.judge import judge_runs
from gpudebug.engine.trial.reuse import baseline_beside, void


def offer_again(setup: Setup, entries: Entries, history: History) -> list[str]:
    """Make each hypothesis UNTESTED again whose REJECTED does not hold with the baseline's next run; a line
    on each. Its runs stay in the record of its change."""
    lines = []
    for entry in entries.document.hypotheses:
        if entry.status is not Status.REJECTED or not entries.trials[entry.number].verified:
            continue
        stored = _by_delta(history.baselines, entries.trials[entry.number].verdict)
        now = _with_the_next(setup, history, stored) if stored is not None else None
        if now is None or not _is_open(now):
            continue
        number = entry.number
        splice(setup, lambda document, number=number: progress.reopen(document, number))  # type: ignore[misc]
        lines.append(
            f"hypothesis {number} was REJECTED, and the baseline's next run contradicts that ({now.why}): it "
            "is offered again, with the runs that it has"
        )
    return lines


def _by_delta(baselines: Baselines, verdict: Mapping[str, Any] | None) -> Verdict | None:
    """Return a verdict of this rule, and of the baseline's record of now, that the delta alone rejects."""
    if verdict is None or verdict.get("rule") != RULE:
        return None
    if not {used["name"] for used in verdict["runs"]}.issuperset(baselines["workload"].runs):
        return None
    failing = [g["name"] for g in verdict["gates"] if g["result"] == Result.FAIL]
    return Verdict.model_validate(verdict) if failing == ["delta"] else None


def _is_open(now: Verdict) -> bool:
    """Tell whether the delta is known, and rejects no longer."""
    delta = next(gate for gate in now.gates if gate.name == "delta")
    known = delta.value != UNKNOWN and delta.result is not Result.FAIL
    return known and now.status not in (Status.REJECTED, Status.INVALID)


def _with_the_next(setup: Setup, history: History, stored: Verdict) -> Verdict | None:
    """Return the verdict with the first run of the baseline that was made after it; None without one."""
    last = max(run_number(used.name) for used in stored.runs)
    later = [name for name in baseline_beside(setup, history) if run_number(name) > last]
    try:
        runs = (stored_run(setup.workspace, name) for name in later)
        following = next((m for m in runs if void(setup.metric, m) is None), None)
        if following is None:
            return None
        before, after = (_read(setup.workspace, stored, part) for part in ("baseline", "trial"))
        before.append(following)
        return judge_runs(
            stored.hypothesis,
            stored.terms or Terms(criteria={}, protocol={}),
            before,
            after,
            confirmed=stored.confirmed,
            more=stored.more,
        )
    except (GpudebugError, ValueError):  # What cannot be read is a matter of `verify`.
        return None


def _read(workspace: store.Workspace, stored: Verdict, part: str) -> list[MeasuredRun]:
    return [stored_run(workspace, used.name) for used in stored.runs if used.part == part]
