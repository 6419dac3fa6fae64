"""After a kill: adopt what was judged, close what was cut off, free what was stuck."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.next import Recovered
from gpudebug.core.campaign.decide import Action, ActionKind, decide
from gpudebug.core.cluster.reasons import CLEANING
from gpudebug.core.errors import StoreError
from gpudebug.core.records import Evidence, RunRecord
from gpudebug.core.samples.row import parse_row
from gpudebug.core.words import Outcome, Status, counted
from gpudebug.edges import launcher, store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.allocations import allocation_of_run
from gpudebug.engine.campaign.claims import forget
from gpudebug.engine.campaign.files import record_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.run.kept import remember_cut_off
from gpudebug.engine.run.prepare import Cycle
from gpudebug.engine.trial.result import record_result

KILLED = "gpudebug was killed"
_TAIL = 1 << 16
_NAMED = 3


def recovered(cycle: Cycle) -> Cycle:
    """Return the hold on a campaign once what an interruption left, if anything, was put in order."""
    action = decide(cycle.loaded.campaign)
    if action.kind is not ActionKind.RECOVER:
        return cycle
    recover(cycle, action)
    return cycle.again()


def recover(cycle: Cycle, action: Action) -> Recovered:
    """Recover from one interruption: one run, or one hypothesis that nothing tests any more."""
    run = action.run
    if run is None:
        done = "nothing of it had been measured; it is UNTESTED again"
    elif cycle.setup.workspace.run(run).sealed:
        done = _adopt(cycle, run, action.hypothesis)
    else:
        workspace, known = cycle.setup.workspace, cycle.loaded.history.records.get(run)
        done = close(workspace, run, known, _reason(workspace, known or {}))
    number = action.hypothesis
    if number is not None and _stuck(cycle, number) and not _adopted(cycle, action):
        splice(cycle.setup, lambda d: progress.set_status(d, number, Status.UNTESTED))
    return Recovered(
        campaign=cycle.setup.config.campaign,
        hypothesis=number,
        run=run,
        why=action.why,
        done=done,
        files=(str(cycle.setup.workspace.run(run).path),) if run else (),
    )


def _stuck(cycle: Cycle, number: int) -> bool:
    """Tell whether a hypothesis is TESTING under no claim that holds."""
    entry = next((h for h in cycle.loaded.entries.document.hypotheses if h.number == number), None)
    return (
        entry is not None and entry.status is Status.TESTING and cycle.loaded.entries.claimed(entry) is None
    )


def _adopted(cycle: Cycle, action: Action) -> bool:
    run = action.run
    return run is not None and cycle.setup.workspace.run(run).has("verdict.json")


def _adopt(cycle: Cycle, name: str, number: int | None) -> str:
    """Return a sealed run with a verdict that the progress file lacks: its result is entered now."""
    assert number is not None
    verdict = record_of(cycle.setup.workspace.run(name), "verdict.json")
    record_result(cycle.setup, number, verdict)
    forget(cycle.setup, number)
    return f"its verdict {verdict['status']} is in the progress file now"


def _known(name: str, data: Mapping[str, Any] | None) -> RunRecord:
    """Read run.json of a run; little if it was torn or never written."""
    try:
        return RunRecord.model_validate(data)
    except ValueError:
        return RunRecord(name=name, campaign=None, role="unknown", command="", argv=(), cwd="", start=now())


def _reason(workspace: store.Workspace, known: Mapping[str, Any]) -> str:
    """Why a run was cut off: the cluster's word, if it was made in an allocation that the cluster ended."""
    job = allocation_of_run(known)
    if job is not None and workspace.element is not None:
        return f"by the cluster: it ended job {job}"
    note = store.Allocations(workspace.private).note() if job is not None else None
    if job is None or note is None or note.job != job.partition(".")[0]:
        return KILLED
    # What it says of the job may come later than the recovery.
    word = note.ended if note.lost else note.left
    if word is not None:
        return f"by the cluster: {word}"
    here = store.Allocations(workspace.private).served().holder.get("allocation")
    again = (note.waits is not None and note.waits not in CLEANING) or (here is not None and here != job)
    return f"by the cluster: job {note.job} was put into the queue again" if again else KILLED


def close(workspace: store.Workspace, name: str, known: Mapping[str, Any] | None, reason: str) -> str:
    """An unsealed run: whatever is left of it is ended, and it is sealed as INTERRUPTED for this reason.

    `known` is its run.json, if it has a sound one.
    What the training left in its folder cannot keep it from that: nothing of it is read whole, and what has
    the name of a record without being a file is moved aside.
    """
    folder = workspace.run(name)
    killed = launcher.sweep(str(folder.path))
    remember_cut_off(folder)
    moved = folder.make_way("run.json", "evidence.json", "verdict.json", "manifest.json")
    held = _last_elapsed(folder.samples)
    ending = {"outcome": Outcome.INTERRUPTED, "duration_s": held}
    record = _known(name, known).model_copy(update={**ending, "end": now(), "reason": reason})
    folder.write("run.json", record)
    # Evidence of a whole run may be there; what was cut off before its seal is none all the same.
    blank = Evidence(run=name, role=record.role, outcome=Outcome.INTERRUPTED)
    folder.write("evidence.json", blank.model_copy(update=ending))
    folder.drop("verdict.json")
    unread = [*moved, *folder.seal_what_is_readable()]
    left = f", {counted(len(killed), 'process', 'processes')} left over ended" if killed else ""
    lost = f"; not readable: {', '.join(sorted(unread)[:_NAMED])}" if unread else ""
    return f"it is sealed as INTERRUPTED{left}{lost}"


def _last_elapsed(samples: Path) -> float | None:
    """When the last sample was taken, by the end of a file of any size; None if it does not say so."""
    try:
        lines = store.read_tail(samples, _TAIL).decode("utf-8", "replace").splitlines()
    except StoreError:
        return None
    rows = (parse_row(line) for line in reversed(lines))
    return next((row.elapsed for row in rows if row is not None), None)
