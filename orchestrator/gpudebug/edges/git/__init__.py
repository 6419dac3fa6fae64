"""The only owner of git: which code a run measures, and the trees in which changes are tried.

HEAD, the user's index, the stash and the checkout's files are never touched.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudebug.edges.git.address import Address, whereabouts
    from gpudebug.edges.git.bases import (
        Base,
        WorktreeChange,
        already_there,
        difference,
        first_there,
        forget,
        keep,
        snapshot,
        stored,
        whole,
        with_patch,
        worktree_change,
    )
    from gpudebug.edges.git.checkout import (
        Checkout,
        base_of,
        create,
        identify,
        ignores,
        refs_below,
        top_folder,
    )
    from gpudebug.edges.git.refs import MeasuredTree, trusted, vouch
    from gpudebug.edges.git.trees import LeftOut
    from gpudebug.edges.git.worktrees import (
        Worktree,
        add_worktree,
        began_with,
        changed_in_links,
        estranged,
        identify_worktree,
        place_of,
        remove_worktree,
        repair,
        touched,
        worktrees_in,
    )
    from gpudebug.edges.git.writes import FileMarks, marks, uncounted, written_since

__all__ = [
    "Address",
    "Base",
    "Checkout",
    "FileMarks",
    "LeftOut",
    "MeasuredTree",
    "Worktree",
    "WorktreeChange",
    "add_worktree",
    "already_there",
    "base_of",
    "began_with",
    "changed_in_links",
    "create",
    "difference",
    "estranged",
    "first_there",
    "forget",
    "identify",
    "identify_worktree",
    "ignores",
    "keep",
    "marks",
    "place_of",
    "refs_below",
    "remove_worktree",
    "repair",
    "snapshot",
    "stored",
    "top_folder",
    "touched",
    "trusted",
    "uncounted",
    "vouch",
    "whereabouts",
    "whole",
    "with_patch",
    "worktree_change",
    "worktrees_in",
    "written_since",
]

_HOMES = {
    **dict.fromkeys(("Address", "whereabouts"), "address"),
    **dict.fromkeys(
        ("Checkout", "base_of", "create", "identify", "ignores", "refs_below", "top_folder"), "checkout"
    ),
    **dict.fromkeys(("FileMarks", "marks", "uncounted", "written_since"), "writes"),
    **dict.fromkeys(("MeasuredTree", "trusted", "vouch"), "refs"),
    **dict.fromkeys(
        (
            *(
                "Worktree",
                "add_worktree",
                "began_with",
                "changed_in_links",
                "estranged",
                "identify_worktree",
                "place_of",
            ),
            *("remove_worktree", "repair", "touched", "worktrees_in"),
        ),
        "worktrees",
    ),
    "LeftOut": "trees",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: looking at a checkout loads nothing that writes."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'bases')}"), name)
