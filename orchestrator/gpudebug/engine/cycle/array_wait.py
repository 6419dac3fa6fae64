"""Waiting for the job arrays of a campaign, and what is said meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

from gpudebug.core.answers.next import NothingRunning, Running
from gpudebug.core.cluster.jobs import Cluster, JobState, SeenJob
from gpudebug.core.cluster.reasons import explained, unknown
from gpudebug.core.errors import ClusterError
from gpudebug.core.words import Status, counted
from gpudebug.edges import store
from gpudebug.engine.campaign.files import find, read_config
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import cluster_of
from gpudebug.engine.cycle.taken_in import end_element, jobs_of, listed, taken_in
from gpudebug.engine.live.tails import last_line
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import remarks

POLL_S = 1.0


def wait_for_array(directory: Path, report: Report, until: float | None) -> Running | NothingRunning | None:
    """Until the campaign's arrays are over or the monotonic clock says `until`; None if there are none."""
    workspace = find(directory)
    elements = store.Elements(workspace)
    if workspace.element is not None or not elements.notes():
        return None
    config = read_config(workspace)
    before = elements.notes(config.campaign)
    if not before:
        return None
    cluster, told = cluster_of(workspace, config), set[tuple[JobState, str]]()
    hopeless: ClusterError | None = None
    said = dict[int, str]()
    while True:
        notes, taken = taken_in(directory, report)
        said |= {one.hypothesis: one.line for one in taken}
        if not notes:
            break
        if cluster is None:
            _refuse_lost(workspace, notes)
        else:
            hopeless = _tell(workspace, cluster, notes, told, report) or hopeless
        if until is not None and time.monotonic() >= until:
            return under_way(read_config(workspace).campaign, notes)
        time.sleep(POLL_S)
    loaded = load(workspace.root)
    tested = {note.hypothesis for note in before}
    entries = [h for h in loaded.entries.document.hypotheses if h.number in tested]
    if hopeless is not None and all(h.status is Status.UNTESTED for h in entries):
        raise hopeless
    found = [f"{h.number} {h.status}" for h in entries]
    # What another command took in has the last word of its worker for the reason.
    logs = {note.hypothesis: elements.log(note) for note in before if note.array is not None}
    untested = [h.number for h in entries if h.status is Status.UNTESTED and h.number in logs]
    lines = (said.get(number) or last_line(logs[number]) for number in untested)
    return NothingRunning(
        campaign=loaded.setup.config.campaign,
        why=f"the array has ended: hypotheses {', '.join(found)}",
        notes=tuple(loaded.setup.workspace.scrub(line) for line in lines if line),
        files=tuple(str(logs[number]) for number in untested),
    )


def _refuse_lost(workspace: store.Workspace, notes: tuple[store.ElementNote, ...]) -> None:
    """ClusterError if elements say nothing any more and no cluster can be asked what became of them."""
    elements = store.Elements(workspace)
    lost = [note for note in notes if note.array and note.ended is None and not elements.worked_on(note)]
    if lost:
        raise ClusterError(
            f"array {lost[0].array} is waited for, and gpudebug.yaml names no cluster any more",
            file=str(workspace.config),
            next="put runner: back, or gpudebug stop",
        )


def _tell(
    workspace: store.Workspace,
    cluster: Cluster,
    notes: tuple[store.ElementNote, ...],
    told: set[tuple[JobState, str]],
    report: Report,
) -> ClusterError | None:
    """Say once why elements wait, or what is not known of them. One that can never start is ended: why."""
    hopeless = dict[str, tuple[store.ElementNote, str, ClusterError]]()
    by_name = {note.name: note for note in notes}
    for name, job in jobs_of(cluster, notes).items():
        line = _line_on(cluster, job)
        why = explained(job.reason) if job.state is JobState.WAITING and job.reason else None
        if why is not None and why.never:
            line, step = f"job {job.id} can never start: {why.text}", why.next or "correct runner.slurm"
            error = ClusterError(line, file=str(workspace.config), next=f"{step}, then gpudebug submit")
            hopeless[job.id] = (by_name[name], f"{line}; {step}", error)
        if line is not None and (job.state, job.reason) not in told:
            told.add((job.state, job.reason))
            remarks(report)(line)
    if not hopeless:
        return None
    # All elements of an array wait for the same: the controller is asked once.
    cluster.cancel((*hopeless,))
    for note, ended, _ in hopeless.values():
        end_element(store.Elements(workspace), note, ended)
    return next(error for *_, error in hopeless.values())


def _line_on(cluster: Cluster, job: SeenJob) -> str | None:
    """Return what is to be said of a job that does not run."""
    if job.state is JobState.UNKNOWN:
        return unknown(cluster.title, job)
    if not job.reason:
        return None
    if job.state is JobState.PAUSED:
        return (
            f"{cluster.title} stopped job {job.id} ({job.reason}); what ran in it is void, and is run again"
        )
    if job.state is not JobState.WAITING:
        return None
    why = explained(job.reason, job.id)
    return f"job {job.id} waits in the queue: {why.text}{f'; {why.next}' if why.next else ''}"


def under_way(campaign: str, notes: tuple[store.ElementNote, ...]) -> Running:
    """Return what `next` and `wait` answer while hypotheses are tested in an array."""
    numbers = tuple(note.hypothesis for note in notes)
    arrays = ", ".join(dict.fromkeys(note.array for note in notes if note.array is not None))
    words = counted(len(numbers), "hypothesis is", "hypotheses are")
    where = f"tested in array {arrays}" if arrays else "submitted"
    return Running(
        campaign=campaign,
        run=None,
        role=None,
        step=None,
        steps=None,
        left_s=None,
        elapsed_s=None,
        gpu_util=None,
        runs_done=0,
        session=None,
        since=notes[0].since,
        detached=True,
        why=f"{words} being {where}: {listed(numbers)}",
        next_command="gpudebug wait --for 9m",
    )
