"""A change as an entry names it: the bytes of its patch, and the digest that sets it apart."""

from __future__ import annotations

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.errors import InterventionError, StoreError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import store


class NoSuchPatch(StoreError):
    """A change names a patch that is not there."""


def tested_change(workspace: store.Workspace, written: str | None) -> str | None:
    """Return the digest of an entry's change as it is written now; None if none can be read."""
    try:
        change = parse_intervention(written) if written else None
        return change_digest(change, patch_of(workspace, change)) if change else None
    except (InterventionError, StoreError):
        return None


def patch_of(workspace: store.Workspace, change: Intervention) -> bytes | None:
    """Return the bytes of the patch that a change names; None if it names none.

    NoSuchPatch if the file is missing, StoreError if it leads out of the repository.
    """
    if change.patch is None:
        return None
    path = store.resolve_inside(workspace.root / change.patch, workspace.root)
    if not path.exists():
        raise NoSuchPatch(
            "the patch is missing",
            file=str(workspace.root / change.patch),
            next="put it back, or reword the entry",
        )
    return store.read_file(path)


def change_digest(intervention: Intervention, patch: bytes | None = None) -> str:
    """Return what sets one change apart from another: how it is written, and what its patch holds."""
    return digest_of(intervention.text, patch)


def digest_of(written: str, patch: bytes | None) -> str:
    """Return the digest of a change that is `written` like this."""
    text = written.encode("utf-8", "surrogateescape")
    return short_digest(text if patch is None else text + b"\0" + patch)
