"""Hypotheses that are tested at once: an element of a job array each."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.next import SubmitAnswer
from gpudebug.core.campaign.decide import Campaign, over, waiting, wanted
from gpudebug.core.catalogue import frameworks
from gpudebug.core.cluster.jobs import Cluster
from gpudebug.core.errors import ClusterError, GpudebugError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign import claims, worktrees
from gpudebug.engine.campaign.accepted import Acceptances, forget_submitted, keep_submitted
from gpudebug.engine.campaign.campaign import Loaded, Setup
from gpudebug.engine.campaign.files import cluster_defaults, read_config
from gpudebug.engine.campaign.runner import array_job
from gpudebug.engine.campaign.verdicts import refuse_brought_elements
from gpudebug.engine.cycle.array_wait import POLL_S, under_way
from gpudebug.engine.cycle.taken_in import claim_in, end_element, listed, take_in_ended, taken_in
from gpudebug.engine.diagnosis.weights import weighed
from gpudebug.engine.run import adapters
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import claimed_campaign, remarks
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial import crashes

SEALS_S = 60.0
"""So long elements that are ended may take to seal what they run."""
_COMMAND = "gpudebug submit"
_FOLLOW = "gpudebug wait --for 9m"
_WORKTREES = (
    "each trains in a worktree of its own: files that git ignores, such as data and environments in the "
    "repository, are there only if worktree.link names them"
)


def ready(campaign: Campaign) -> tuple[int, ...]:
    """Return the hypotheses that need no code and are waiting, as many as the budget has room for."""
    if over(campaign) is not None:
        return ()
    under_way = sum(h.status is Status.TESTING for h in campaign.hypotheses)
    room = campaign.hypothesis_budget - campaign.tested - under_way
    found = sorted((h for h in waiting(campaign, True) if not h.problem), key=wanted, reverse=True)
    return tuple(sorted(h.number for h in found[: max(0, room)]))


def chosen(loaded: Loaded) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The hypotheses that an array would test, and a line on each that it would not, since its code crashed.

    The person who mends it is not in an element, which could but say so, after a baseline of its own.
    """
    campaign = weighed(loaded)
    crashed = {
        h.number: m
        for h in waiting(campaign, True)
        if (m := crashes.unanswered(loaded.setup, loaded.entries, loaded.history, h.number))
    }
    others = tuple(h for h in campaign.hypotheses if h.number not in crashed)
    lines = (
        f"hypothesis {number} is left out: its code {crashes.how(m.evidence)}; "
        f"mend {loaded.entries.interventions[number].patch}, or gpudebug next"
        for number, m in crashed.items()
    )
    return ready(replace(campaign, hypotheses=others)), tuple(map(loaded.setup.workspace.scrub, lines))


def shared_output(argv: Sequence[str], links: Sequence[str]) -> str | None:
    """A remark if the command writes to one place from each worktree: an absolute path, a linked folder."""
    option = frameworks.output_flag(argv, adapters.known())
    place = os.path.normpath(option.value) if option is not None and option.value else ""
    parts = ("", *map(os.path.normpath, links))
    if option is None or not any(place.startswith(f"{part}/") or place == part for part in parts if place):
        return None
    return (
        f"all write to {option.name}={option.value} at once, and may take each other's files away: "
        f"{option.name}={option.value}/{{run}} in workload.command gives each run a folder of its own"
    )


def submit_array(directory: Path, cluster: Cluster, report: Report) -> SubmitAnswer | None:
    """Have every hypothesis that waits tested in an element of its own; None if fewer than two wait, unless
    arrays test all that there is to test.

    ClusterError with the cluster's reason if it refuses: then they wait as before.
    """
    with claimed_campaign(directory, report, _COMMAND) as cycle:
        for one in take_in_ended(cycle.setup, cycle.loaded.entries.acceptances, cluster, report):
            remarks(report)(one.line)
        loaded = cycle.again().loaded
        refuse_brought_elements(loaded.setup.workspace, loaded.setup.checkout)
        numbers, left_out = chosen(loaded)
        for line in left_out:
            remarks(report)(line)
        if len(numbers) < 2:
            return _tested_already(loaded.setup, loaded.entries.document)
        for note in worktrees.remember(loaded.setup, loaded.code):
            remarks(report)(note)
        # Each element makes a worktree of it; what cannot be kept is told before anything is asked for.
        worktrees.base(loaded.setup, loaded.code)
        if not loaded.setup.config.worktree.link:
            remarks(report)(_WORKTREES)
        shared = shared_output(loaded.setup.config.workload.argv(), loaded.setup.config.worktree.link)
        if shared is not None:
            remarks(report)(loaded.setup.workspace.scrub(shared))
        job = _submitted(loaded.setup, loaded.entries.acceptances, cluster, numbers)
        record(loaded.setup.workspace.root, None, _COMMAND)
    config = loaded.setup.config
    assert config.runner is not None
    at_once = min(config.runner.parallel, len(numbers))
    return SubmitAnswer(
        action="waiting",
        campaign=config.campaign,
        job=job,
        script=None,
        why=f"array {job} tests hypotheses {listed(numbers)}, each in a job of its own, {at_once} at once",
        next_command=_FOLLOW,
    )


def _tested_already(setup: Setup, document: ProgressFile) -> SubmitAnswer | None:
    """What is answered if nothing waits that an allocation could be asked for; None if something does."""
    notes = store.Elements(setup.workspace).notes(setup.config.campaign)
    if not notes or any(h.status is Status.UNTESTED for h in document.hypotheses):
        return None
    found = under_way(setup.config.campaign, notes)
    return SubmitAnswer(
        action="waiting",
        campaign=found.campaign,
        job=notes[0].array,
        script=None,
        why=found.why,
        next_command=_FOLLOW,
    )


def _submitted(setup: Setup, acceptances: Acceptances, cluster: Cluster, numbers: tuple[int, ...]) -> str:
    """Claim the hypotheses for elements that are made for them, and submit these; the array's id."""
    elements = store.Elements(setup.workspace)
    since = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
    store.Allocations(setup.workspace.private).put_defaults(cluster_defaults())
    with elements.changing():
        notes, job = elements.make(setup.config.campaign, numbers, since), None
        try:
            for note in notes:
                claims.mark(setup, note.hypothesis, claim_in(note))
            data = store.read_file(setup.progress_path, follow=True)
            for note in notes:
                elements.put_progress(note, data)
                keep_submitted(acceptances, note.name)
            job = cluster.submit(array_job(setup.workspace, setup.config, numbers))
            for note in notes:
                elements.put(replace(note, array=job))
        except BaseException:
            _take_back(setup, acceptances, cluster, notes, job)
            raise
    return job


def _take_back(
    setup: Setup,
    acceptances: Acceptances,
    cluster: Cluster,
    notes: Sequence[store.ElementNote],
    job: str | None,
) -> None:
    """Leave nothing of an array that could not be submitted, or written down: its error is the one told."""
    if job is not None:
        with contextlib.suppress(GpudebugError):
            cluster.cancel((job,))
    for note in notes:
        with contextlib.suppress(GpudebugError):
            claims.free(setup, note.hypothesis, claim_in(note))
        with contextlib.suppress(GpudebugError):
            forget_submitted(acceptances, note.name)
        with contextlib.suppress(GpudebugError):
            store.Elements(setup.workspace).remove(note)


def end_array(workspace: store.Workspace, cluster: Cluster | None, report: Report) -> tuple[str, ...]:
    """End the elements of the campaign, once what they run is sealed; the arrays that they were of.

    Without a `cluster`, which gpudebug.yaml no longer names, those that nothing works on; ClusterError if
    there are others.
    """
    elements = store.Elements(workspace)
    found = elements.notes(read_config(workspace).campaign)
    notes = [note for note in found if note.array is not None and note.ended is None]
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
    # What seals still has its folder: the next command takes that in.
    late = [note for note in notes if elements.worked_on(note)]
    if late:
        numbers = listed(tuple(note.hypothesis for note in late))
        remarks(report)(f"hypotheses {numbers} are still being sealed; gpudebug wait takes them in")
    for note in notes:
        if note not in late:
            end_element(elements, note, "gpudebug stop")
    taken_in(workspace.root, report)
    return tuple(dict.fromkeys(str(note.array) for note in notes))
