"""`gpudebug release`: a claim is given back, and the work that was done under it is kept."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core import progress
from gpudebug.core.answers.hypotheses import ReleaseAnswer
from gpudebug.core.errors import BusyError, UsageError
from gpudebug.core.progress import ProgressFile, claims
from gpudebug.core.words import Status
from gpudebug.edges.store import leases
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.claims import forget, under
from gpudebug.engine.campaign.files import find
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.premises import entry_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.cycle.detached import stop
from gpudebug.engine.run.prepare import claim_of


def release(directory: Path, number: int, session: str | None) -> ReleaseAnswer:
    """`release H`: give a claim back. The work in its worktree is kept, and named: as a patch,
    or in place if it holds a secret.

    A session gives back its own claims only, a person any; a detached run of it is ended. BusyError if it
    is another's, or tested in the foreground.
    """
    loaded = load(directory, session)
    entry = entry_of(loaded.setup.progress_path, loaded.entries.document, number)
    held = claims.on(entry)
    if entry.status is not Status.TESTING:
        raise UsageError(
            f"hypothesis {number} is {entry.status}: no session holds it",
            file=str(loaded.setup.progress_path),
            line=entry.line,
            next="gpudebug status",
        )
    if session is not None and held is not None and held.session != session:
        raise BusyError(
            f"hypothesis {number} is held by {held.holder} since {held.since}, and this is session {session}",
            file=str(loaded.setup.progress_path),
            line=entry.line,
            next="gpudebug next takes another hypothesis",
        )
    if loaded.entries.claimed(entry) is not None:
        # A claim to implement has no run: what is under way, if anything is, is another hypothesis's.
        kept = _freed(loaded.setup, loaded.entries.document, number)
    else:
        stop(directory, session)
        with claim_of(find(directory), "gpudebug release", session):
            found = load(directory, session)
            kept = _freed(found.setup, found.entries.document, number)
    where, why = _told(kept)
    return ReleaseAnswer(
        campaign=loaded.setup.config.campaign,
        hypothesis=number,
        kept=where,
        why=f"hypothesis {number} is UNTESTED again{why}",
        files=(str(loaded.setup.progress_path), *((where,) if where else ())),
    )


def _freed(setup: Setup, document: ProgressFile, number: int) -> worktrees.KeptChange:
    """Set a hypothesis UNTESTED; its change is kept before its worktree goes.

    In this order: between any two steps another may claim it, and what is theirs then stays.
    """
    held = claims.on(document.hypothesis(number))
    kept = worktrees.rescue(setup, document, number)
    if kept.worktree is None:
        forget(setup, number)
    else:
        leases.drop(setup.workspace.leases, number)
    splice(setup, lambda d: _untested(d, number, held.note if held else None))
    return kept


def _told(kept: worktrees.KeptChange) -> tuple[str | None, str]:
    """Return where a change is kept, and the clause on it."""
    if kept.worktree is not None:
        return str(kept.worktree), f"; its change holds a secret, so it stays in {kept.worktree}"
    return kept.patch, f"; its change is kept in {kept.patch}" if kept.patch else ""


def _untested(document: progress.ProgressFile, number: int, claim: str | None) -> bytes:
    """Return the file with a hypothesis UNTESTED; as it is if it has a verdict or another claim by now."""
    if not under(document, number, claim):
        return document.data
    return progress.set_status(document, number, Status.UNTESTED)
