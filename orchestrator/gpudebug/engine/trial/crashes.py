"""Crashes of a change's own code, and losses that it makes NaN: the first is mended under the same claim, the
second is the verdict.

The state is the crashed run: it is sealed and has no verdict.
"""

from __future__ import annotations

from dataclasses import replace

from gpudebug.core.change import intervention as interventions
from gpudebug.core.change.intervention import Intervention, SingleChange
from gpudebug.core.progress import ProgressFile
from gpudebug.core.progress.claims import Claim
from gpudebug.core.records import Evidence, Verdict
from gpudebug.core.verdict.gates.outcome import crowded_out, is_infrastructure, killed_by_host
from gpudebug.core.words import Outcome, Result, Status, Trend
from gpudebug.edges import store
from gpudebug.edges.store import leases
from gpudebug.engine.campaign import claims, worktrees
from gpudebug.engine.campaign.campaign import Entries, History, Setup
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.reuse import alike, newest


class CodeCrashed(Exception):
    """The change of a hypothesis failed for the first time; `run` shows how."""

    def __init__(self, number: int, run: MeasuredRun) -> None:
        self.number = number
        self.run = run
        super().__init__(f"hypothesis {number}: the code of the change failed in run {run.folder.name}")


def earlier(
    setup: Setup, document: ProgressFile, history: History, number: int, role: str
) -> list[MeasuredRun]:
    """Return the runs of a hypothesis, since its last verdict, in which code of its change failed."""
    judged = [
        name
        for name, record in history.records.items()
        if record.get("hypothesis") == number and setup.workspace.run(name).has("verdict.json")
    ]
    since = newest([*judged, *document.hypothesis(number).runs])
    found = (
        stored_run(setup.workspace, name)
        for name, record in alike(setup, history.records, role, history.identities["workload"], since)
        if record.get("hypothesis") == number
    )
    judged_by_loss = setup.config.criteria.loss != "any"
    return [m for m in found if _by_own_code(m, judged_by_loss)]


def _by_own_code(m: MeasuredRun, judged_by_loss: bool) -> bool:
    change, e = m.record.change, m.evidence
    coded = change is not None and any(
        c.kind in ("patch", "code") for c in interventions.parse(change).changes
    )
    outside = is_infrastructure(e) or killed_by_host(e) or crowded_out(e)
    crashed = e.outcome is Outcome.CRASHED and not outside
    return coded and (crashed or (judged_by_loss and e.loss.trend is Trend.NAN))


def is_first(verdict: Verdict, measured: MeasuredRun) -> bool:
    """Tell whether this run, the last one of a trial whose code never failed before, crashed by its code, or
    made the loss NaN by it."""
    failed = {g.name for g in verdict.gates if g.result is Result.FAIL} & {"outcome", "loss"}
    return verdict.status is Status.REJECTED and _by_own_code(measured, "loss" in failed) and bool(failed)


def how(e: Evidence) -> str:
    """`crashed in run 0002-h1 (exception)`, or that its loss became NaN there."""
    if e.outcome is Outcome.CRASHED:
        return f"crashed in run {e.run}" + (f" ({e.failure.kind})" if e.failure else "")
    return f"made the loss NaN in run {e.run}"


def is_unanswered(
    workspace: store.Workspace,
    entries: Entries,
    number: int,
    found: list[MeasuredRun],
    digest: str,
    *,
    written: bool,
) -> bool:
    """Tell whether a crash was met before a kill, or under another claim, and its code is what it was.

    A caller who holds the claim was asked to mend it, and so was the one who wrote the change just now; an
    element of a job array is nobody that mends.
    """
    held = workspace.element is None and entries.claimed(entries.document.hypothesis(number)) is not None
    return len(found) == 1 and not (held or written) and found[0].record.change_digest == digest


def unanswered(setup: Setup, entries: Entries, history: History, number: int) -> MeasuredRun | None:
    """The run in which the code of a waiting hypothesis crashed, if that code was not changed since."""
    digest = entries.trials[number].change
    found = earlier(setup, entries.document, history, number, f"h{number}")
    waits = digest is not None and is_unanswered(
        setup.workspace, entries, number, found, digest, written=False
    )
    return found[0] if waits else None


def keep_claim(setup: Setup, number: int, claim: Claim, change: Intervention) -> None:
    """Back to a claim to implement: a lease of time, and code that is written where its worktree has it."""
    leases.take(setup.workspace.leases, number, claim.session, claim.since)
    unwritten = _as_code(change).text if worktrees.is_written(setup, number) else None
    claims.mark(setup, number, claim, unwritten)


def _as_code(change: Intervention) -> Intervention:
    return replace(
        change, changes=tuple(SingleChange("code") if c.kind == "patch" else c for c in change.changes)
    )
