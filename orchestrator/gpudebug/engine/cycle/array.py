"""Hypotheses that are tested at once: an element of a job array each, whose runs become the campaign's."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.next import NothingRunning, Running, SubmitAnswer
from gpudebug.core.campaign.decide import Campaign, over, waiting, wanted
from gpudebug.core.cluster.jobs import Cluster, JobState, SeenJob
from gpudebug.core.cluster.reasons import explained
from gpudebug.core.errors import BusyError, ClusterError, ProgressError, StoreError
from gpudebug.core.progress.claims import Claim
from gpudebug.core.words import Status, counted
from gpudebug.edges import git, store
from gpudebug.engine.campaign import claims, worktrees
from gpudebug.engine.campaign.accepted import written
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import cluster_defaults, find, read_config, stored_verdict
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import array_job, cluster_of
from gpudebug.engine.campaign.tracked_runs import brought_elements
from gpudebug.engine.diagnosis.weights import weighed
from gpudebug.engine.live.tails import last_line
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import claim_of, claimed_campaign, remarks
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial.result import record_result

POLL_S = 1.0
SEALS_S = 60.0
"""So long elements that are ended may take to seal what they run."""
_COMMAND = "gpudebug submit"
_WORKTREES = (
    "each trains in a worktree of its own: files that git ignores, such as data and environments in the "
    "repository, are there only if worktree.link names them"
)


def ready(campaign: Campaign) -> tuple[int, ...]:
    """The hypotheses that need no code and are waiting, as many as the budget has room for."""
    if over(campaign) is not None:
        return ()
    under_way = sum(h.status is Status.TESTING for h in campaign.hypotheses)
    room = campaign.hypothesis_budget - campaign.tested - under_way
    found = sorted((h for h in waiting(campaign, True) if not h.problem), key=wanted, reverse=True)
    return tuple(sorted(h.number for h in found[: max(0, room)]))


def submit_array(directory: Path, cluster: Cluster, report: Report) -> SubmitAnswer | None:
    """Have every hypothesis that waits tested in an element of its own; None if fewer than two wait.

    ClusterError with the cluster's reason if it refuses: then they wait as before.
    """
    with claimed_campaign(directory, report, _COMMAND) as cycle:
        for line in take_in_ended(cycle.loaded, cluster):
            remarks(report)(line)
        loaded = cycle.again().loaded
        numbers = ready(weighed(loaded))
        if len(numbers) < 2:
            return None
        for note in worktrees.remember(loaded):
            remarks(report)(note)
        # Each element makes a worktree of it; what cannot be kept is told before anything is asked for.
        worktrees.base(loaded)
        if not loaded.config.worktree.link:
            remarks(report)(_WORKTREES)
        job = _submitted(loaded, cluster, numbers)
        record(loaded.workspace.root, None, _COMMAND)
    config = loaded.config
    assert config.runner is not None
    at_once = min(config.runner.parallel, len(numbers))
    return SubmitAnswer(
        action="waiting",
        campaign=config.campaign,
        job=job,
        script=None,
        why=f"array {job} tests hypotheses {_listed(numbers)}, each in a job of its own, {at_once} at once",
        next_command="gpudebug wait --for 9m",
    )


def _submitted(loaded: Loaded, cluster: Cluster, numbers: tuple[int, ...]) -> str:
    """Claim the hypotheses for elements that are made for them, and submit these; the array's id."""
    elements = store.Elements(loaded.workspace)
    since = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
    store.Allocations(loaded.workspace.runs).put_defaults(cluster_defaults())
    with elements.changing():
        notes = elements.make(numbers, since)
        try:
            for note in notes:
                claims.mark(loaded, note.hypothesis, claim_in(note))
            data = store.read_file(loaded.progress_path)
            accepted = written(loaded.acceptances.entries or {})
            for note in notes:
                elements.put_campaign(note, data, accepted)
            job = cluster.submit(array_job(loaded.workspace, loaded.config, numbers))
        except BaseException:
            for note in notes:
                claims.free(loaded, note.hypothesis, claim_in(note))
                elements.remove(note)
            raise
        for note in notes:
            elements.put(replace(note, array=job))
    return job


def claim_in(note: store.ElementNote) -> Claim:
    """The claim that an element has on its hypothesis."""
    return Claim(note.session, note.since)


def take_in_ended(loaded: Loaded, cluster: Cluster | None) -> list[str]:
    """Take in what elements measured that are over, while the campaign is claimed; a line on each.

    StoreError if git tracks what is in their folders: then it may be anybody's.
    """
    found = _over(store.Elements(loaded.workspace), cluster)
    if found and brought_elements(loaded.workspace, loaded.checkout):
        raise StoreError(
            "git tracks runs of job arrays, so they may be anybody's",
            file=str(loaded.workspace.elements),
            next="git rm -r --cached runs, and remove what is in it",
        )
    return [take_in(loaded, note, why) for note, why in found]


def _over(elements: store.Elements, cluster: Cluster | None) -> list[tuple[store.ElementNote, str]]:
    """The elements that are over, and why.

    One that neither said that it ended nor is known to the cluster as over goes on. Without `cluster` only
    what an element says itself is known.
    """
    notes = elements.notes()
    seen = {} if cluster is None else _seen(cluster, notes)
    found = ((note, note.ended or _why_over(elements, note, seen.get(note.name), cluster)) for note in notes)
    return [(note, why) for note, why in found if why is not None]


def _seen(cluster: Cluster, notes: tuple[store.ElementNote, ...]) -> dict[str, SeenJob]:
    """What the cluster says of the elements' jobs: one question for all of them."""
    ids = {
        note.name: cluster.element(note.array, note.hypothesis)
        for note in notes
        if note.array is not None and note.ended is None
    }
    return dict(zip(ids, cluster.states(tuple(ids.values())), strict=True))


def _why_over(
    elements: store.Elements, note: store.ElementNote, seen: SeenJob | None, cluster: Cluster | None
) -> str | None:
    """Why an element will do nothing any more though it did not say so; None while it may."""
    if note.array is None:
        with elements.changing():
            found = elements.note(note.name)
        return "it was not submitted" if found is not None and found.array is None else None
    if seen is None or not seen.over or elements.worked_on(note):
        return None
    assert cluster is not None
    word = seen.word or str(seen.end or "")
    told = f"{cluster.title} ended job {seen.id}: {word}{f' ({seen.reason})' if seen.reason else ''}"
    if seen.infrastructure:
        return told
    log = elements.log(note)
    said = last_line(log)
    return f"its worker failed: {said or told}; see {log}"


def take_in(loaded: Loaded, note: store.ElementNote, why: str) -> str:
    """Make an element's runs the campaign's and enter its verdict, if it has one; a line on what came of it.

    It can be cut off and done again at any moment: the element goes last.
    """
    elements = store.Elements(loaded.workspace)
    elements.take_in(note)
    number = note.hypothesis
    verdict = next((v for v in _verdicts(loaded, note) if v["hypothesis"] == number), None)
    said = f"hypothesis {number} is UNTESTED again: {why}"
    if verdict is not None:
        try:
            kept = record_result(loaded, number, verdict)
            said = f"hypothesis {number} is {verdict['status']}: {verdict['why']}"
            if kept:
                claims.forget(loaded, number)
            else:
                said = f"the result of hypothesis {number} came too late: its claim is gone"
        except ProgressError as e:
            said = e.message
    if any(h.number == number for h in loaded.document.hypotheses):
        claims.free(loaded, number, claim_in(note))
    _clear(loaded, note)
    elements.remove(note)
    return loaded.workspace.scrub(said)


def _verdicts(loaded: Loaded, note: store.ElementNote) -> Iterator[dict[str, object]]:
    workspace = loaded.workspace
    for name in reversed(workspace.run_names()):
        if int(note.name) < store.run_number(name) < int(note.name) + store.BLOCK:
            verdict = stored_verdict(workspace.run(name)) if workspace.run(name).sealed else None
            if verdict is not None:
                yield verdict


def _clear(loaded: Loaded, note: store.ElementNote) -> None:
    """Take away the worktrees that a kill left in an element."""
    own = store.Workspace(loaded.workspace.root, element=note.name)
    folder = own.worktrees / loaded.config.campaign
    git.repair(loaded.checkout.top, folder)
    for path in git.worktrees_in(loaded.checkout.at, folder):
        git.remove_worktree(loaded.checkout.top, path)


def taken_in(directory: Path, report: Report) -> tuple[store.ElementNote, ...]:
    """The elements that are not over yet, once what is over was taken in; all of them while the campaign is
    busy."""
    workspace = find(directory)
    elements = store.Elements(workspace)
    if workspace.element is not None or not elements.notes():
        return ()
    # Without the claim, which others need: most of the time nothing is over.
    if not _over(elements, cluster_of(workspace, read_config(workspace))):
        return elements.notes()
    try:
        with claim_of(workspace, "gpudebug wait"):
            loaded = load(workspace.root)
            lines = take_in_ended(loaded, cluster_of(workspace, loaded.config))
            if lines:
                record(workspace.root, None, "gpudebug wait")
    except BusyError:
        return elements.notes()
    for line in lines:
        remarks(report)(line)
    return elements.notes()


def wait_for_array(directory: Path, report: Report, until: float | None) -> Running | NothingRunning | None:
    """Until the campaign's arrays are over or the monotonic clock says `until`; None if there are none."""
    workspace = find(directory)
    elements = store.Elements(workspace)
    before = elements.notes()
    if workspace.element is not None or not before:
        return None
    cluster, told = cluster_of(workspace, read_config(workspace)), set[tuple[JobState, str]]()
    hopeless: ClusterError | None = None
    while notes := taken_in(directory, report):
        if cluster is not None:
            hopeless = _tell(workspace, cluster, notes, told, report) or hopeless
        if until is not None and time.monotonic() >= until:
            return under_way(read_config(workspace).campaign, notes)
        time.sleep(POLL_S)
    loaded = load(workspace.root)
    tested = {note.hypothesis for note in before}
    entries = [h for h in loaded.document.hypotheses if h.number in tested]
    if hopeless is not None and all(h.status is Status.UNTESTED for h in entries):
        raise hopeless
    found = [f"{h.number} {h.status}" for h in entries]
    # The last word of a worker is why its hypothesis has no verdict.
    logs = {note.hypothesis: elements.log(note) for note in before if note.array is not None}
    untested = [h.number for h in entries if h.status is Status.UNTESTED and h.number in logs]
    return NothingRunning(
        campaign=loaded.config.campaign,
        why=f"the array has ended: hypotheses {', '.join(found)}",
        notes=tuple(loaded.workspace.scrub(line) for number in untested if (line := last_line(logs[number]))),
        files=tuple(str(logs[number]) for number in untested),
    )


def _tell(
    workspace: store.Workspace,
    cluster: Cluster,
    notes: tuple[store.ElementNote, ...],
    told: set[tuple[JobState, str]],
    report: Report,
) -> ClusterError | None:
    """Say once why elements wait, or what is not known of them. One that can never start is ended: why."""
    elements, hopeless = store.Elements(workspace), None
    by_name = {note.name: note for note in notes}
    for name, job in _seen(cluster, notes).items():
        line = _line_on(cluster, job)
        why = explained(job.reason) if job.state is JobState.WAITING and job.reason else None
        if why is not None and why.never:
            line = f"job {job.id} can never start: {why.text}"
            cluster.cancel((job.id,))
            _end(elements, by_name[name], f"{line}; {why.next or 'correct runner.slurm'}")
            hopeless = ClusterError(
                line,
                file=str(workspace.config),
                next=f"{why.next or 'correct runner.slurm'}, then gpudebug submit",
            )
        if line is not None and (job.state, job.reason) not in told:
            told.add((job.state, job.reason))
            remarks(report)(line)
    return hopeless


def _line_on(cluster: Cluster, job: SeenJob) -> str | None:
    """What is to be said of a job that does not run."""
    if not job.reason:
        return None
    if job.state is JobState.UNKNOWN:
        return f"{cluster.title} does not answer ({job.reason}); job {job.id} is waited for"
    if job.state is JobState.PAUSED:
        return (
            f"{cluster.title} stopped job {job.id} ({job.reason}); what ran in it is void, and is run again"
        )
    if job.state is not JobState.WAITING:
        return None
    why = explained(job.reason)
    return f"job {job.id} waits in the queue: {why.text}{f'; {why.next}' if why.next else ''}"


def _end(elements: store.Elements, note: store.ElementNote, why: str) -> None:
    with elements.changing():
        found = elements.note(note.name)
        if found is not None and found.ended is None:
            elements.put(replace(found, ended=why))


def under_way(campaign: str, notes: tuple[store.ElementNote, ...]) -> Running:
    """What `next` and `wait` answer while hypotheses are tested in an array."""
    numbers = tuple(note.hypothesis for note in notes)
    arrays = ", ".join(dict.fromkeys(note.array for note in notes if note.array is not None))
    words = counted(len(numbers), "hypothesis is", "hypotheses are")
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
        why=f"{words} being tested in array {arrays}: {_listed(numbers)}",
        next_command="gpudebug wait --for 9m",
    )


def end_array(workspace: store.Workspace, cluster: Cluster | None, report: Report) -> tuple[str, ...]:
    """End the elements of the campaign, once what they run is sealed; the arrays that they were of.

    Without a `cluster`, which gpudebug.yaml no longer names, those that nothing works on; ClusterError if
    there are others.
    """
    elements = store.Elements(workspace)
    notes = [note for note in elements.notes() if note.array is not None and note.ended is None]
    if not notes:
        return ()
    if cluster is not None:
        cluster.cancel(tuple(cluster.element(str(note.array), note.hypothesis) for note in notes))
        deadline = time.monotonic() + SEALS_S
        while any(map(elements.worked_on, notes)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    else:
        working = [note for note in notes if elements.worked_on(note)]
        if working:
            raise ClusterError(
                f"array {working[0].array} runs, and gpudebug.yaml names no cluster any more",
                file=str(workspace.config),
                next="end it by the cluster's own command, or put runner: back, then gpudebug stop",
            )
    for note in notes:
        _end(elements, note, "gpudebug stop")
    taken_in(workspace.root, report)
    return tuple(dict.fromkeys(str(note.array) for note in notes))


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
