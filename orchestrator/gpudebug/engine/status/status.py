"""`gpudebug status`: what was recorded where nothing has changed since, else what the evidence says.

People and agents ask all the time, so nothing here imports more than the recorded answer needs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.status import StatusAnswer
from gpudebug.core.errors import StoreError
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.status.recorded import recorded


def status(directory: Path, *, every: bool = True) -> StatusAnswer:
    """Where a campaign is. Reads only.

    Without `every` the answer holds the hypotheses that a text lists; `rest` counts the others by status.
    """
    session = session_of()
    found = recorded(directory, session, every=every)
    if found is None:
        from gpudebug.engine.campaign.load import load
        from gpudebug.engine.status.answer import status_of

        found = status_of(load(directory, session))
    line = allocation(Path(found.files.runs))
    return found if line is None else replace(found, allocation=line)


def allocation(runs: Path) -> str | None:
    """The campaign's jobs on a cluster, as they were seen last; None without one."""
    lines = (_allocation(runs), _array(runs))
    return "; ".join(line for line in lines if line is not None) or None


def _array(runs: Path) -> str | None:
    """What is tested in job arrays now."""
    if not (runs / ".array").exists():
        return None
    from gpudebug.edges import store

    notes = store.Elements(store.Workspace(runs.parent)).notes()
    arrays = ", ".join(dict.fromkeys(note.array for note in notes if note.array is not None))
    return f"array {arrays} tests hypotheses {', '.join(str(n.hypothesis) for n in notes)}" if notes else None


def _allocation(runs: Path) -> str | None:
    if not (runs / ".allocation").exists():
        return None  # What reads it need not be loaded.
    from gpudebug.edges import store

    try:
        note = store.Allocations(runs).note()
    except StoreError:
        return None  # Another user's: it says nothing of the campaign itself.
    if note is None:
        return None
    if note.ended is not None:
        return f"job {note.job} is over: {note.ended}"
    if note.left is not None:
        return f"job {note.job}: its worker left: {note.left}"
    if note.waits is None:
        return f"job {note.job} runs, asked for at {note.since}"
    from gpudebug.core.cluster.reasons import explained

    return f"job {note.job} waits since {note.since}: {explained(note.waits).text}"
