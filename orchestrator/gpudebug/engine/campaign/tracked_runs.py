"""Runs that git tracks: they came with the repository, and any pusher to it may have written them."""

from __future__ import annotations

import os
from collections.abc import Collection

from gpudebug.core.errors import StoreError
from gpudebug.edges import git, store

BROUGHT = "brought along"
REMEDY = "git rm -r --cached runs"
_NAMED = 3


def brought(workspace: store.Workspace, checkout: git.Checkout) -> frozenset[str]:
    """Return the names of the run folders in which git tracks anything; all if `runs` itself is tracked."""
    try:
        runs = os.fsencode((workspace.root / store.RUNS).relative_to(checkout.top))
    except ValueError:
        return frozenset()
    if runs in checkout.left_out:
        return frozenset(workspace.run_names())
    prefix = runs + b"/"
    below = (path[len(prefix) :] for path in checkout.left_out if path.startswith(prefix))
    return frozenset(os.fsdecode(path.partition(b"/")[0]) for path in below)


def refuse_brought_elements(workspace: store.Workspace, checkout: git.Checkout) -> None:
    """StoreError if git tracks anything of what elements of job arrays keep: then it may be anybody's."""
    try:
        folder = os.fsencode(workspace.elements.relative_to(checkout.top))
    except ValueError:
        return
    runs = os.path.dirname(folder)
    if any(path in (runs, folder) or path.startswith(folder + b"/") for path in checkout.left_out):
        raise StoreError(
            "git tracks runs of job arrays, so they may be anybody's",
            file=str(workspace.elements),
            next="git rm -r --cached runs, and remove what is in it",
        )


def why_brought(names: Collection[str]) -> str:
    """Return a line on runs that came with the repository."""
    listed = sorted(names)
    shown = ", ".join(f"runs/{name}" for name in listed[:_NAMED])
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return f"{BROUGHT}: git tracks {shown}{more}, so they may be anybody's"
