"""Folders of gpudebug's that are links: refused, but for a runs/ that its owner keeps on another disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpudebug.core.errors import StoreError
from gpudebug.edges import store

# What gpudebug makes in runs/ itself; a run folder that is a link is read and never written to.
_OWN = (".array", store.LEASES, "sessions", "worktrees")


def refuse_links(workspace: store.Workspace) -> None:
    """StoreError if runs/, or a folder of gpudebug's in it, is a link that leads writes elsewhere.

    A link `runs` is followed if git ignores it, so that no clone brings it, and the caller owns the folder
    that it leads to.
    """
    runs = workspace.runs
    if runs.is_symlink():
        _refuse_foreign_runs(workspace)
    for name in _OWN:
        if _is_link(runs / name):
            raise StoreError(
                "is a link; gpudebug keeps a folder there", file=str(runs / name), next=f"rm {runs / name}"
            )


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError as e:
        raise store.os_error(e, path.parent, "cannot read") from None


def _refuse_foreign_runs(workspace: store.Workspace) -> None:
    from gpudebug.edges import git

    runs = workspace.runs
    try:
        link, target = runs.lstat(), runs.stat()
    except (OSError, RuntimeError):
        raise StoreError("is a link that leads nowhere", file=str(runs), next=f"rm {runs}") from None
    if not stat.S_ISDIR(target.st_mode) or {link.st_uid, target.st_uid} != {os.geteuid()}:
        raise StoreError(
            f"is a link to {os.path.realpath(runs)}, which is not a folder of yours",
            file=str(runs),
            next=f"rm {runs}, or let it lead to a folder of yours",
        )
    if store.in_git(runs.resolve()):
        raise StoreError("leads into git's folder", file=str(runs), next=f"rm {runs}")
    if not git.ignores(workspace.root, store.RUNS):
        raise StoreError(
            f"is a link to {os.path.realpath(runs)} that git does not ignore; a clone could have it",
            file=str(runs),
            next=f"rm {runs}; or, if you made it: git rm --cached --ignore-unmatch runs && "
            'echo /runs >> "$(git rev-parse --git-path info/exclude)"',
        )
