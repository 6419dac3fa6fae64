"""Claims on hypotheses: taken, renewed, given back; what a session has had."""

from __future__ import annotations

import datetime
from typing import Any

from gpudebug.core import progress
from gpudebug.core.campaign.decide import Claimed
from gpudebug.core.errors import ProgressError, StoreError
from gpudebug.core.progress import ProgressFile, claims
from gpudebug.core.progress.claims import Claim
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.edges.store import leases
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Entries, Records, Setup
from gpudebug.engine.campaign.files import read_progress, stored_record
from gpudebug.engine.campaign.progress_edit import splice

LATE = "late.json"


def take(setup: Setup, entries: Entries, number: int) -> Claim:
    """Claim a hypothesis to implement it: TESTING in the progress file, and a lease of time."""
    claim = new_claim(setup, entries, number)
    leases.take(setup.workspace.leases, number, claim.session, claim.since)
    if entries.claimed(entries.document.hypothesis(number)) is None:
        mark(setup, number, claim)
    return claim


def living(workspace: store.Workspace, document: progress.ProgressFile) -> dict[int, leases.Lease]:
    """The leases that have not run out, and those of elements of job arrays, which end with these alone."""
    now = leases.now()
    found = {number: lease for number, lease in leases.read(workspace.leases).items() if lease.live(now)}
    if not workspace.element_notes.is_dir():
        return found
    held = {h.number: claims.on(h) for h in document.hypotheses}
    for note in store.Elements(workspace).notes(workspace.campaign):
        if held.get(note.hypothesis) == (note.session, note.since):
            found[note.hypothesis] = store.Lease(note.session, note.since, now)
    return found


def new_claim(setup: Setup, entries: Entries, number: int) -> Claim:
    """Return the claim that this caller has on a hypothesis already, else one from now on.

    An element of a job array has the one that it was made for, also after it was cut off and begun again.
    """
    workspace = setup.workspace
    note = store.Elements(workspace).note(workspace.element) if workspace.element is not None else None
    if note is not None and note.hypothesis == number:
        return Claim(note.session, note.since)
    entry = entries.document.hypothesis(number)
    held = claims.on(entry)
    if held is not None and entries.claimed(entry) is Claimed.MINE:
        return held
    now = datetime.datetime.now(datetime.timezone.utc)
    return Claim(setup.session, now.isoformat(timespec="microseconds"))


def mark(setup: Setup, number: int, claim: Claim, intervention: str | None = None) -> None:
    """Set a hypothesis TESTING under a claim, with the change that was written for it just now."""
    splice(setup, lambda d: progress.set_testing(d, number, claim.note, intervention))


def start(setup: Setup, number: int, claim: Claim, intervention: str | None) -> None:
    """A claim to implement becomes one to run: a lock of gpudebug and its warden, no lease of time."""
    mark(setup, number, claim, intervention)
    leases.drop(setup.workspace.leases, number)


def holds(setup: Setup, number: int, claim: Claim) -> bool:
    """Tell whether the progress file still has a hypothesis under this claim.

    The campaign's own, also in an element of a job array. One that cannot be read, or has lost the entry,
    takes no claim away: the splice will say what is wrong.
    """
    try:
        document = read_progress(setup.workspace.root / setup.config.progress)
        return under(document, number, claim.note)
    except (ProgressError, StoreError):
        return True


def under(document: progress.ProgressFile, number: int, claim: str | None) -> bool:
    """Tell whether a hypothesis is TESTING under a claim, or under none that says whose it is."""
    entry = document.hypothesis(number)
    held = claims.on(entry)
    return entry.status is Status.TESTING and (held is None or claim in (None, held.note))


def free(setup: Setup, number: int, claim: Claim, note: str = "") -> bool:
    """Set a hypothesis UNTESTED if it is still under this claim, and end its lease; whether it was.

    `note` says what of its trial is done already.
    """
    held: list[bool] = []

    def edit(document: progress.ProgressFile) -> bytes:
        held[:] = [under(document, number, claim.note)]
        return progress.set_status(document, number, Status.UNTESTED, note) if held[0] else document.data

    splice(setup, edit)
    leases.drop(setup.workspace.leases, number)
    return held[0]


def tidy(workspace: store.Workspace, document: ProgressFile) -> None:
    """End the leases of what no session implements: a kill left them, or a verdict written by hand."""
    for number in leases.read(workspace.leases):
        entry = next((h for h in document.hypotheses if h.number == number), None)
        if entry is None or entry.status is not Status.TESTING:
            leases.drop(workspace.leases, number)


def forget(setup: Setup, number: int) -> None:
    """A hypothesis has its verdict: neither lease nor worktree is needed any more."""
    leases.drop(setup.workspace.leases, number)
    worktrees.remove(setup, number)


def had(setup: Setup, records: Records) -> dict[str, Any] | None:
    """Return the verdict of this caller's session, {} of one that was too late; None before."""
    if setup.session is None:
        return None
    for name in reversed(records):
        record, run = records[name], setup.workspace.run(name)
        mine = (record.get("campaign"), record.get("session")) == (setup.config.campaign, setup.session)
        if mine and run.sealed and (run.has("verdict.json") or run.has(LATE)):
            return stored_record(run, "verdict.json")
    return None
