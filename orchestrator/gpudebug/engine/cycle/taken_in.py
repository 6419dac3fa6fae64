"""What elements of job arrays measured, made the campaign's own: their runs, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpudebug.core.cluster.jobs import Cluster, SeenJob
from gpudebug.core.cluster.reasons import unlogged
from gpudebug.core.errors import BusyError, ProgressError, StoreError
from gpudebug.core.progress.claims import Claim
from gpudebug.edges import git, store
from gpudebug.engine.campaign import claims
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import find, read_config, stored_verdict
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import cluster_of
from gpudebug.engine.campaign.tracked_runs import brought_elements
from gpudebug.engine.live.tails import last_line
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import claim_of, remarks
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial.result import record_result


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
    seen = {} if cluster is None else jobs_of(cluster, notes)
    found = ((note, note.ended or _why_over(elements, note, seen.get(note.name), cluster)) for note in notes)
    return [(note, why) for note, why in found if why is not None]


def jobs_of(cluster: Cluster, notes: tuple[store.ElementNote, ...]) -> dict[str, SeenJob]:
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
    log = elements.log(note)
    if seen.unlogged:
        return f"job {seen.id} never began: {unlogged(seen, str(log))}; gpudebug doctor --cluster"
    if seen.infrastructure:
        return told
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


def end_element(elements: store.Elements, note: store.ElementNote, why: str) -> None:
    """Say of an element that it will do nothing any more, unless it has said so itself."""
    with elements.changing():
        found = elements.note(note.name)
        if found is not None and found.ended is None:
            elements.put(replace(found, ended=why))


def listed(numbers: tuple[int, ...]) -> str:
    """`1, 2, 3`."""
    return ", ".join(map(str, numbers))
