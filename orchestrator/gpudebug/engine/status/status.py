"""`gpudebug status`: what was recorded where nothing has changed since, else what the evidence says.

People and agents ask all the time, so nothing here imports more than the recorded answer needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.status import NextAction, StatusAnswer
from gpudebug.core.errors import StoreError
from gpudebug.edges import opener
from gpudebug.edges.store.root import RUNS, find_root, private_folder
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.status.recorded import recorded

ANOTHER = "another"
"""The allocation that is asked for next."""


def status(directory: Path, *, every: bool = True) -> StatusAnswer:
    """Return where a campaign is. Reads only.

    Without `every` the answer holds the hypotheses that a text lists; `rest` counts the others by status.
    """
    session = session_of()
    found = recorded(directory, session, every=every)
    if found is None:
        from gpudebug.engine.campaign.load import load
        from gpudebug.engine.status.answer import status_of

        found = status_of(load(directory, session))
    root = find_root(directory)
    line = _on_cluster(root, found.campaign) if root is not None else None
    return found if line is None or root is None else replace(found, allocation=line, next=_next(found, root))


def _next(found: StatusAnswer, root: Path) -> NextAction:
    """What is next: a baseline, if what is to be tested would be tested in another allocation than it."""
    if (
        found.next.action in ("propose", "record_baseline")
        and (tested := _in_arrays(found, root)) is not None
    ):
        return tested
    if found.next.action != "test":
        return found.next
    from gpudebug.core.campaign.allocation import afresh

    runs, here = root / RUNS, _measures(root)
    for role, row in found.baselines.items():
        why = afresh(_measured(runs, row.runs), here) if row is not None and row.valid else None
        if why is not None:
            why = f"baseline {role}: {why}"
            return NextAction(action="record_baseline", hypothesis=None, role=role, why=why)
    return found.next


def _in_arrays(found: StatusAnswer, root: Path) -> NextAction | None:
    """Return what elements of job arrays test, if a person has nothing to do but wait for them."""
    waits = (found.rest or {}).get("UNTESTED") or any(h.status == "UNTESTED" for h in found.hypotheses)
    line = None if waits or session_of() is not None else _array(root, found.campaign)
    return (
        None
        if line is None
        else NextAction(action="test", hypothesis=None, role=None, why=f"{line}: gpudebug wait")
    )


def _measures(root: Path) -> str | None:
    """Return the allocation that what is next would be measured in; None without a cluster."""
    from gpudebug.edges import clusters, store

    around = clusters.inside()
    if around is not None:
        return around.allocation
    # By a word, for the reader of YAML is not loaded: a campaign may have left its cluster.
    if b"runner" not in store.read_file(root / store.CONFIG, follow=True):
        return None
    served = store.Allocations(store.Workspace(root).private).served()
    return str(served.holder.get("allocation")) if served.held else ANOTHER


def _measured(runs: Path, names: Sequence[str]) -> Iterator[str | None]:
    """The allocation of each of these runs; None of one that was made outside of any, or cannot be read."""
    for name in names:
        try:
            node = json.loads(opener.read_file(runs / name / "run.json"))["node"]
            yield node["allocation"] if isinstance(node["allocation"], str) else None
        except (StoreError, ValueError, LookupError, TypeError, RecursionError):
            yield None


def _on_cluster(root: Path, campaign: str) -> str | None:
    """Return the campaign's jobs on a cluster, as they were seen last; None without one."""
    lines = (_allocation(root), _array(root, campaign))
    return "; ".join(line for line in lines if line is not None) or None


def _array(root: Path, campaign: str) -> str | None:
    """Return what of a campaign is tested in job arrays now."""
    if not (private_folder(root) / "array").exists():
        return None
    from gpudebug.edges import store

    try:
        notes = store.Elements(store.Workspace(root)).notes(campaign)
    except StoreError:
        return None
    if not notes:
        return None
    arrays = ", ".join(dict.fromkeys(note.array for note in notes if note.array is not None))
    numbers = ", ".join(str(note.hypothesis) for note in notes)
    # A `submit` that was killed, or is at it, has no array yet.
    return (
        f"array {arrays} tests hypotheses {numbers}"
        if arrays
        else f"hypotheses {numbers} are being submitted"
    )


def _allocation(root: Path) -> str | None:
    private = private_folder(root)
    if not (private / "allocation").exists():
        return None  # What reads it need not be loaded.
    from gpudebug.edges import store

    try:
        note = store.Allocations(private).note()
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
