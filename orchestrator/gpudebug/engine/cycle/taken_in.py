"""What elements of job arrays measured, made the campaign's own: their runs, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.cluster.jobs import Cluster, SeenJob
from gpudebug.core.cluster.reasons import unlogged
from gpudebug.core.errors import BusyError, GpudebugError, ProgressError
from gpudebug.core.progress.claims import Claim
from gpudebug.edges import git, store
from gpudebug.engine.campaign import claims
from gpudebug.engine.campaign.accepted import Acceptances, forget_submitted
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.files import find, read_config, read_progress, stored_record, stored_verdict
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import cluster_of
from gpudebug.engine.campaign.verdicts import refuse_brought_elements
from gpudebug.engine.live.tails import last_line
from gpudebug.engine.run.attempts import NEAR_ITS_END
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import claim_of, remarks
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial.recover import KILLED, close
from gpudebug.engine.trial.result import record_result, runs_of


class TakenElement(NamedTuple):
    """What came of an element: a line on its hypothesis."""

    hypothesis: int
    line: str


@dataclass(frozen=True)
class _Over:
    """Why an element is over, and why what it left unsealed was cut off."""

    why: str
    cut_off: str = KILLED


def claim_in(note: store.ElementNote) -> Claim:
    """Return the claim that an element has on its hypothesis."""
    return Claim(note.session, note.since)


def take_in_ended(
    setup: Setup, acceptances: Acceptances, cluster: Cluster | None, report: Report
) -> list[TakenElement]:
    """Take in what elements measured that are over, while the campaign is claimed; a line on each.

    One that cannot be taken in keeps no other from it: its error is raised at last, the lines reported.
    """
    taken, errors = list[TakenElement](), list[GpudebugError]()
    for note, found in _over(store.Elements(setup.workspace), setup.config.campaign, cluster):
        try:
            taken.append(
                TakenElement(note.hypothesis, take_in(setup, acceptances, note, found.why, found.cut_off))
            )
        except GpudebugError as e:
            errors.append(e)
    if errors:
        for one in taken:
            remarks(report)(one.line)
        raise errors[0]
    return taken


def _over(
    elements: store.Elements, campaign: str, cluster: Cluster | None
) -> list[tuple[store.ElementNote, _Over]]:
    """Return the elements of a campaign that are over, and how.

    One that neither said that it ended nor is known to the cluster as over goes on. Without `cluster` only
    what an element says itself is known.
    """
    notes = elements.notes(campaign)
    seen = {} if cluster is None else jobs_of(cluster, notes)
    found = (
        (note, _Over(note.ended) if note.ended else _unsaid(elements, note, seen.get(note.name), cluster))
        for note in notes
    )
    return [(note, over) for note, over in found if over is not None]


def jobs_of(cluster: Cluster, notes: tuple[store.ElementNote, ...]) -> dict[str, SeenJob]:
    """Return what the cluster says of the elements' jobs: one question for all of them."""
    ids = {
        note.name: cluster.element(note.array, note.hypothesis)
        for note in notes
        if note.array is not None and note.ended is None
    }
    return dict(zip(ids, cluster.states(tuple(ids.values())), strict=True))


def _unsaid(
    elements: store.Elements, note: store.ElementNote, seen: SeenJob | None, cluster: Cluster | None
) -> _Over | None:
    """Return why an element will do nothing any more though it did not say so; None while it may."""
    if note.array is None:
        with elements.changing():
            found = elements.note(note.name)
        return _Over("it was not submitted") if found is not None and found.array is None else None
    if seen is None or not seen.over or elements.worked_on(note):
        return None
    assert cluster is not None
    log = elements.log(note)
    if seen.unlogged:
        told = f"job {seen.id} never began: {unlogged(seen, str(log))}; gpudebug doctor --cluster"
        return _Over(told, f"by the cluster: {told}")
    how = note.left if note.left is not None and not seen.infrastructure else seen.how
    told = f"{cluster.title} ended job {seen.id}: {how}"
    if seen.infrastructure or note.left is not None:
        cut_off = f"by the cluster: {told}"
        if NEAR_ITS_END in how:
            told += "; a longer runner.slurm.time, or a partition that does not preempt, gives it more"
        return _Over(told, cut_off)
    said = last_line(log)
    return _Over(f"its worker failed: {said or told}; see {log}")


def take_in(
    setup: Setup, acceptances: Acceptances, note: store.ElementNote, why: str, cut_off: str = KILLED
) -> str:
    """Make an element's runs the campaign's and enter its verdict, if it has one; a line on what came of it.

    It can be cut off and done again at any moment: the element goes last. StoreError if git tracks what is in
    the elements' folders.
    """
    elements = store.Elements(setup.workspace)
    refuse_brought_elements(setup.workspace, setup.checkout)
    aside = elements.take_in(note)
    _close_unsealed(setup.workspace, note, cut_off)
    number = note.hypothesis
    verdict = next((v for v in _verdicts(setup.workspace, note) if v["hypothesis"] == number), None)
    said = _entered(setup, number, verdict) if verdict is not None else None
    freed = _named(setup.progress_path, number) and claims.free(setup, number, claim_in(note))
    if said is None:
        why = _altered(setup.workspace, note) or why
        state = (
            f"{_state(setup.progress_path, number)}{' again' if freed else ', and its element has no result'}"
        )
        said = f"hypothesis {number} {state}: {why}"
    _clear(setup, note)
    forget_submitted(acceptances, note.name)
    elements.remove(note)
    moved = (f"; what had the name of its run is {path} now" for path in aside)
    return setup.workspace.scrub(said + "".join(moved))


def _entered(setup: Setup, number: int, verdict: Mapping[str, Any]) -> str:
    """Enter a verdict; what came of it."""
    last = runs_of(verdict)[-1]
    try:
        if record_result(setup, number, verdict):
            claims.forget(setup, number)
            return f"hypothesis {number} is {verdict['status']}: {verdict['why']}"
    except ProgressError as e:
        return f"{e.message}; runs/{last} keeps it{f'; {e.next}' if e.next else ''}"
    return (
        f"the result of hypothesis {number} came too late: its claim is gone, and it "
        f"{_state(setup.progress_path, number)}; runs/{last} keeps it"
    )


def _named(progress_path: Path, number: int) -> bool:
    return any(h.number == number for h in read_progress(progress_path).hypotheses)


def _state(progress_path: Path, number: int) -> str:
    """Return where a hypothesis stands now, as words behind its number."""
    entries = read_progress(progress_path).hypotheses
    found = next((h.status for h in entries if h.number == number), None)
    return f"is {found}" if found is not None else "is in the progress file no more"


def _own(workspace: store.Workspace, note: store.ElementNote) -> list[str]:
    own = store.Workspace(workspace.root, element=note.name)
    return [name for name in workspace.run_names() if own.owns(name)]


def _verdicts(workspace: store.Workspace, note: store.ElementNote) -> Iterator[dict[str, object]]:
    """Yield what the element judged, newest first, as it was sealed."""
    for name in reversed(_own(workspace, note)):
        run = workspace.run(name)
        mine = stored_record(run, "run.json").get("campaign") == note.campaign
        sound = mine and run.intact("run.json", "verdict.json")
        if sound and (verdict := stored_verdict(run)) is not None:
            yield verdict


def _altered(workspace: store.Workspace, note: store.ElementNote) -> str | None:
    """Return why a verdict that is there counts for nothing."""
    runs = map(workspace.run, reversed(_own(workspace, note)))
    sealed = (run for run in runs if run.sealed and run.has("verdict.json"))
    judged = next((run for run in sealed if not run.intact("run.json", "verdict.json")), None)
    return f"runs/{judged.name} is not as it was sealed" if judged is not None else None


def _close_unsealed(workspace: store.Workspace, note: store.ElementNote, why: str) -> None:
    """Seal what the element was cut off in, while it is known what cut it off.

    A worker that lives all the same seals it itself, or `next` recovers it.
    """
    if store.Elements(workspace).worked_on(note):
        return
    for name in _own(workspace, note):
        known = stored_record(workspace.run(name), "run.json")
        if known and not workspace.run(name).sealed:
            close(workspace, name, known, why)


def _clear(setup: Setup, note: store.ElementNote) -> None:
    """Take away the worktrees that a kill left in an element."""
    own = store.Workspace(setup.workspace.root, element=note.name)
    folder = own.worktrees / setup.config.campaign
    git.repair(setup.checkout.top, folder)
    for path in git.worktrees_in(setup.checkout.at, folder):
        git.remove_worktree(setup.checkout.top, path)


def taken_in(directory: Path, report: Report) -> tuple[tuple[store.ElementNote, ...], list[TakenElement]]:
    """Return the elements that are not over yet, once what is over was taken in, and what came of that,
    reported too; all of them while the campaign is busy."""
    workspace = find(directory)
    elements = store.Elements(workspace)
    if workspace.element is not None or not elements.notes():
        return (), []
    config = read_config(workspace)
    # Without the claim, which others need: most of the time nothing is over.
    if not _over(elements, config.campaign, cluster_of(workspace, config)):
        return elements.notes(config.campaign), []
    try:
        with claim_of(workspace, "gpudebug wait"):
            loaded = load(workspace.root)
            taken = take_in_ended(
                loaded.setup, loaded.entries.acceptances, cluster_of(workspace, loaded.setup.config), report
            )
            if taken:
                record(workspace.root, None, "gpudebug wait")
    except BusyError:
        return elements.notes(config.campaign), []
    for one in taken:
        remarks(report)(one.line)
    return elements.notes(config.campaign), taken


def end_element(elements: store.Elements, note: store.ElementNote, why: str) -> None:
    """Say of an element that it will do nothing any more, unless it has said so itself."""
    with elements.changing():
        found = elements.note(note.name)
        if found is not None and found.ended is None:
            elements.put(replace(found, ended=why))


def listed(numbers: tuple[int, ...]) -> str:
    """`1, 2, 3`."""
    return ", ".join(map(str, numbers))
