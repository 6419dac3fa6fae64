"""The patches of a campaign, hypotheses/patches/F: read safely, tried on the base, compared by effect."""

from __future__ import annotations

from collections.abc import Iterable

from gpudebug.core import patches
from gpudebug.core.errors import GpudebugError, InterventionError, StoreError
from gpudebug.core.intervention import PATCHES
from gpudebug.core.intervention import parse as parse_intervention
from gpudebug.edges import snapshot, store
from gpudebug.engine import places
from gpudebug.engine.campaign import Loaded


def read(workspace: store.Workspace, path: str) -> bytes:
    """The bytes of a patch. StoreError where it is not there, no regular file, or leads out of the folder."""
    file = workspace.root / path
    target = store.resolve_inside(file, workspace.root / PATCHES)
    if not target.exists():
        raise StoreError("there is no such patch", file=str(file), next=f"put the patch in {PATCHES}/")
    return store.read_file(target)


def refuse_unusable(loaded: Loaded, path: str) -> None:
    """Refuse a patch that no trial could test: unsafe, secret, or none that the base takes."""
    data = read(loaded.workspace, path)
    patch = patches.read(data, path)
    patches.refuse_unsafe(patch, own=_own(loaded))
    if not patches.effective(patch):
        raise InterventionError(
            "the patch changes nothing but comments and white space",
            file=path,
            next="change what the program does",
        )
    text = data.decode("utf-8", "surrogateescape")
    if loaded.workspace.scrub(text) != text:
        raise InterventionError(
            "the patch holds a secret, and it is for everyone to read",
            file=path,
            next="read it from the environment instead",
        )
    refuse_unless_applies(loaded, path)


def _own(loaded: Loaded) -> list[str]:
    """gpudebug's own files, relative to the top of the repository."""
    top, root = loaded.checkout.top, loaded.workspace.root
    return [str(p.relative_to(top)) for p in places.ours(loaded, root) if p.is_relative_to(top)]


def refuse_unless_applies(loaded: Loaded, path: str) -> None:
    """GitError, with the file and line that stand in the way, where the base does not take the patch."""
    top, data = loaded.checkout.top, read(loaded.workspace, path)
    base = places.base(loaded).commit
    if not snapshot.already_there(top, base, data):
        snapshot.with_patch(top, base, data, label="tried", file=path)


def effects(workspace: store.Workspace, written: Iterable[str | None]) -> dict[str, object]:
    """By its path, what each patch that these changes name does; one that cannot be read is left out."""
    found: dict[str, object] = {}
    for text in written:
        try:
            path = parse_intervention(text).patch if text else None
            if path is not None and path not in found:
                found[path] = patches.digest(read(workspace, path))
        except GpudebugError:
            continue
    return found
