"""The only owner of git: which code a run measures, and the trees in which changes are tried.

HEAD, the user's index, the stash and the checkout's files are never touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.lazy import loader

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
        tracks,
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
        stands,
        touched,
        worktrees_in,
    )
    from gpudebug.edges.git.writes import FileMarks, marks, uncounted, written_since

# Looking at a checkout loads nothing that writes.
__getattr__ = loader(
    __name__,
    {
        "address": "Address whereabouts",
        "bases": (
            "Base WorktreeChange already_there difference first_there forget keep snapshot stored whole "
            "with_patch worktree_change"
        ),
        "checkout": "Checkout base_of create identify ignores refs_below top_folder tracks",
        "refs": "MeasuredTree trusted vouch",
        "trees": "LeftOut",
        "worktrees": (
            "Worktree add_worktree began_with changed_in_links estranged identify_worktree place_of "
            "remove_worktree repair stands touched worktrees_in"
        ),
        "writes": "FileMarks marks uncounted written_since",
    },
)
