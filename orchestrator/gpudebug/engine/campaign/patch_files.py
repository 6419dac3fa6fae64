"""The patches of a campaign, hypotheses/patches/F: read safely, tried on the base, compared by effect."""

from __future__ import annotations

from collections.abc import Iterable

from gpudebug.core.change import patches
from gpudebug.core.change.intervention import PATCHES, Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.errors import GpudebugError, InterventionError, StoreError
from gpudebug.core.words import VERDICTS
from gpudebug.edges import git, store
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Entries, MeasuredCode, Setup
from gpudebug.engine.campaign.premises import why_of
from gpudebug.engine.campaign.private import refs

_TRIED = "tried"


def read(workspace: store.Workspace, path: str) -> bytes:
    """The bytes of a patch. StoreError if it is missing, not a regular file, or leads out of the folder."""
    file = workspace.root / path
    target = store.resolve_inside(file, workspace.root / PATCHES)
    if not target.exists():
        raise StoreError("the patch is missing", file=str(file), next=f"put the patch in {PATCHES}/")
    return store.read_file(target)


def refuse_unusable(setup: Setup, code: MeasuredCode, path: str) -> None:
    """Refuse a patch that no trial could test: unsafe, secret, or none that the base takes."""
    check(setup, read(setup.workspace, path), path)
    refuse_unless_applies(setup, code, path)


def check(setup: Setup, data: bytes, file: str) -> None:
    """Refuse what would touch git's own files or gpudebug's, leave the repository, show a secret, or change
    nothing; `file` names it."""
    patch = patches.read(data, file)
    patches.refuse_unsafe(patch, own=_own(setup))
    if not patches.effective(patch):
        raise InterventionError(
            "the patch changes nothing but comments and white space",
            file=file,
            next="change what the program does",
        )
    text = data.decode("utf-8", "surrogateescape")
    if setup.workspace.scrub(text) != text:
        raise InterventionError(
            "the patch holds a secret, and it is for everyone to read",
            file=file,
            next="read it from the environment instead",
        )


def refuse_tested(setup: Setup, entries: Entries, number: int, change: Intervention, data: bytes) -> None:
    """Refuse code, written for hypothesis `number`, whose effect another hypothesis has its verdict on.

    `change` is that code as a patch, under whatever name; `data` is what the patch holds.
    """
    judged = [h for h in entries.document.hypotheses if h.status in VERDICTS and h.intervention]
    known = {**effects(setup.workspace, [h.intervention for h in judged])}
    known[str(change.patch)] = patches.digest(data)
    argv, env = setup.config.workload.argv(), setup.config.workload.env
    for h in judged:
        try:
            same = change.same_effect(parse_intervention(h.intervention or ""), argv, env, known)
        except InterventionError:
            continue
        if same:
            raise InterventionError(
                f"the change of hypothesis {number} is that of hypothesis {h.number}, {h.status}: "
                f"{why_of(entries.trials, h)}",
                file=entries.document.file,
                line=h.line,
                next=f"write another change, or gpudebug release {number}",
            )


def _own(setup: Setup) -> list[str]:
    """gpudebug's own files, relative to the top of the repository."""
    top, root = setup.checkout.top, setup.workspace.root
    return [str(p.relative_to(top)) for p in worktrees.ours(setup, root) if p.is_relative_to(top)]


def refuse_unless_applies(setup: Setup, code: MeasuredCode, path: str) -> None:
    """GitError, with the file and line in the way, if the base does not take the patch."""
    top, data = setup.checkout.top, read(setup.workspace, path)
    base = _base(setup, code)
    if not git.already_there(top, base, data):
        git.with_patch(top, base, data, label=_TRIED, file=path)


def _base(setup: Setup, code: MeasuredCode) -> str:
    """The commit that a patch would be tested on. To ask for it moves no base: recording a baseline does."""
    top = setup.checkout.top
    prefix = refs(setup.workspace.root, setup.config.campaign, setup.checkout)
    kept = git.stored(setup.checkout.at, f"{prefix}/checkout")
    if code.drifted or (kept is not None and kept.tree == code.tree):
        return worktrees.base(setup, code).commit
    ref, ours = f"{prefix}/{_TRIED}", worktrees.ours(setup, setup.workspace.root)
    commit = git.snapshot(top, ref=ref, label=_TRIED, exclude=ours).commit
    git.forget(top, ref)
    return worktrees.with_accepted(setup.checkout, code, commit)


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
