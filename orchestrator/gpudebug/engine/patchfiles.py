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

_TRIED = "tried"


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
    base = _base(loaded)
    if not snapshot.already_there(top, base, data):
        snapshot.with_patch(top, base, data, label=_TRIED, file=path)


def _base(loaded: Loaded) -> str:
    """The commit that a patch would be tested on. To ask for it moves no base: recording a baseline does."""
    top = loaded.checkout.top
    refs = places.refs(loaded.workspace.root, loaded.config.campaign, top)
    kept = snapshot.stored(top, f"{refs}/checkout")
    if loaded.code.drifted or (kept is not None and kept.tree == loaded.code.tree):
        return places.base(loaded).commit
    ref, ours = f"{refs}/{_TRIED}", places.ours(loaded, loaded.workspace.root)
    commit = snapshot.snapshot(top, ref=ref, label=_TRIED, exclude=ours).commit
    snapshot.forget(top, ref)
    for patch in loaded.code.patches:
        if not snapshot.already_there(top, commit, patch):
            made = snapshot.with_patch(top, commit, patch, label=_TRIED, file="an accepted patch")
            commit = made.commit
    return commit


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
