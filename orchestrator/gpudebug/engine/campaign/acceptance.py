"""Recording what a person accepts, and what of it a person took back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.campaign.accepted_changes import accepted
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import ProgressFile
from gpudebug.edges import host, store
from gpudebug.engine.campaign.accepted import FILE, Acceptances, Recorded, acceptances_of, written
from gpudebug.engine.campaign.campaign import Entries, Setup
from gpudebug.engine.campaign.files import read_progress


class NotAsAccepted(GpudebugError):
    """What was accepted is not there any more as it was accepted."""

    code = "accept"


def record(setup: Setup, entries: Entries, number: int, order: int) -> None:
    """Record that hypothesis `number` was accepted, beside what was accepted before."""
    with _held(setup):
        now = _now(setup)
        first = entries.acceptances.entries is None and not now.file.exists()
        kept = _of_lines(setup.workspace, entries, entries.document) if first else dict(now.entries or {})
        _write(now, {**kept, number: _made(setup.workspace, entries, number, order)})


def refuse_altered(setup: Setup, entries: Entries) -> None:
    """Refuse a session's measurement where an acceptance no longer holds: the base would move by it."""
    kept = entries.acceptances.entries
    lost = sorted({*(kept or ())} - {h.number for h in entries.accepted})
    if setup.session is None or not lost:
        return
    numbers = ", ".join(map(str, lost))
    raise NotAsAccepted(
        f"hypothesis {numbers} was accepted, and its entry, its patch or its run is not as it was then",
        file=str(setup.progress_path),
        next="put it back as it was; a person who means it runs: gpudebug next",
    )


def settle(setup: Setup, entries: Entries) -> str | None:
    """Make the record agree with the file in a person's command; what was changed, in a line.

    A campaign of 0.1.0 gets the record of what it has accepted, a new campaign an empty one. An acceptance
    goes whose line a person deleted, or whose entry or run is another by now.
    """
    before = entries.acceptances
    if setup.session is not None or before.problem is not None:
        return None
    standing = {h.number for h in entries.accepted}
    if before.entries is not None and before.entries.keys() <= standing and before.file.exists():
        return None
    with _held(setup):
        document, now = read_progress(setup.progress_path), _now(setup)
        if before.entries is None:
            kept = _of_lines(setup.workspace, entries, document)
            _write(now, kept)
            return _said("recorded as accepted", [*kept]) if kept else None
        lines = {h.number for h in document.hypotheses if h.accepted is not None}
        known, altered = now.entries or {}, {*before.entries} - standing
        gone = sorted((known.keys() & altered) | (known.keys() - lines))
        _write(now, {n: found for n, found in known.items() if n not in gone})
    what = "its Accepted line is gone" if lines.isdisjoint(gone) else "it is not what was accepted any more"
    return _said(f"no longer accepted, as {what}", gone) if gone else None


def _said(what: str, numbers: Sequence[int]) -> str:
    return f"hypothesis {', '.join(map(str, numbers))}: {what}"


def _of_lines(workspace: store.Workspace, entries: Entries, document: ProgressFile) -> dict[int, Recorded]:
    """Return a record of each line whose verdict follows from runs that were recorded here."""
    now = {h.number: h.runs for h in document.hypotheses if h.accepted is not None}
    found = (h for h in accepted(entries.document) if entries.trials[h.number].recorded_here)
    return {
        h.number: _made(workspace, entries, h.number, h.accepted or 1)
        for h in found
        if now.get(h.number) == h.runs
    }


def _made(workspace: store.Workspace, entries: Entries, number: int, order: int) -> Recorded:
    run = entries.document.hypothesis(number).runs[-1]
    verdict = entries.trials[number].verdict or {}
    sealed = store.file_digest(workspace.run(run).path / "verdict.json")
    return Recorded(order, str(verdict.get("change_digest")), run, sealed, host.now())


def _held(setup: Setup) -> Any:
    return store.locked(setup.workspace.progress_lock(setup.progress_path))


def _now(setup: Setup) -> Acceptances:
    return acceptances_of(setup.workspace.root, setup.config.campaign, setup.checkout)


def _write(where: Acceptances, entries: Mapping[int, Recorded]) -> None:
    where.kept.write(FILE, written(entries))
