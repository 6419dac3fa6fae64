"""Hypotheses that are tested at once: an element of a job array each."""

from __future__ import annotations

import contextlib
import datetime
import time
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.next import SubmitAnswer
from gpudebug.core.campaign.decide import Campaign, over, waiting, wanted
from gpudebug.core.cluster.jobs import Cluster
from gpudebug.core.errors import ClusterError
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign import claims, worktrees
from gpudebug.engine.campaign.accepted import written
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import cluster_defaults
from gpudebug.engine.campaign.runner import array_job
from gpudebug.engine.cycle.taken_in import claim_in, end_element, listed, take_in_ended, taken_in
from gpudebug.engine.diagnosis.weights import weighed
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import claimed_campaign, remarks
from gpudebug.engine.status.summary import record

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
        why=f"array {job} tests hypotheses {listed(numbers)}, each in a job of its own, {at_once} at once",
        next_command="gpudebug wait --for 9m",
    )


def _submitted(loaded: Loaded, cluster: Cluster, numbers: tuple[int, ...]) -> str:
    """Claim the hypotheses for elements that are made for them, and submit these; the array's id."""
    elements = store.Elements(loaded.workspace)
    since = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
    store.Allocations(loaded.workspace.runs).put_defaults(cluster_defaults())
    with elements.changing():
        notes, job = elements.make(numbers, since), None
        try:
            for note in notes:
                claims.mark(loaded, note.hypothesis, claim_in(note))
            data = store.read_file(loaded.progress_path)
            accepted = written(loaded.acceptances.entries or {})
            for note in notes:
                elements.put_campaign(note, data, accepted)
            job = cluster.submit(array_job(loaded.workspace, loaded.config, numbers))
            for note in notes:
                elements.put(replace(note, array=job))
        except BaseException:
            if job is not None:
                # Nobody would know of it.
                with contextlib.suppress(ClusterError):
                    cluster.cancel((job,))
            for note in notes:
                claims.free(loaded, note.hypothesis, claim_in(note))
                elements.remove(note)
            raise
    return job


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
        end_element(elements, note, "gpudebug stop")
    taken_in(workspace.root, report)
    return tuple(dict.fromkeys(str(note.array) for note in notes))
