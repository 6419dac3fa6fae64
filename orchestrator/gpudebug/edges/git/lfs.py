"""Git LFS: nothing is downloaded; what this repository has is put into a worktree, what it lacks is named."""

from __future__ import annotations

import os

from gpudebug.edges.git.repository import Repository

_POINTER = b"version https://git-lfs.github.com/spec/"
_NAMED = 3


def fetch_stored(inside: Repository) -> list[str]:
    """Replace pointers in a new worktree by the contents that the repository keeps; notes on the others."""
    if inside.ask("config", "--get-regexp", r"^filter\.lfs\.(smudge|process)$").status:
        return []
    magic = inside.with_variables(GIT_LITERAL_PATHSPECS="0")
    paths = magic.names("ls-files", "-z", "--", ":(attr:filter=lfs)")
    if not any(_is_pointer(inside, path) for path in paths):
        return []
    # It reads the local store only; where it fails, the pointers that stay are named.
    magic.ask("lfs", "checkout")
    left = [os.fsdecode(path) for path in paths if _is_pointer(inside, path)]
    if not left:
        return []
    shown = ", ".join(left[:_NAMED]) + (f" and {len(left) - _NAMED} more" if len(left) > _NAMED else "")
    return [f"git-lfs has only pointers of {shown}: git lfs pull fetches the contents"]


def _is_pointer(inside: Repository, path: bytes) -> bool:
    try:
        with open(inside.at.place / os.fsdecode(path), "rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False
