"""What was changed in a worktree, as a patch against its base."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpudebug.edges.git import bases, trees, untracked
from gpudebug.edges.git.address import Address
from gpudebug.edges.git.repository import Repository
from gpudebug.edges.git.untracked import LeftOut
from gpudebug.edges.git.worktrees import looking

# What running and testing leave behind, in everybody's .gitignore.
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints")

_REPLACED = "it replaces a link to the checkout's, and no change can"


@dataclass(frozen=True, slots=True)
class WorktreeChange:
    """A patch for `git apply`, the files that it changes, and what lies in the worktree but not in it."""

    patch: bytes
    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def worktree_change(at: Address, path: Path, commit: str) -> WorktreeChange:
    """The files of the worktree asked for as `path` against `commit`, whatever was committed or staged there.

    Untracked files come along as in `snapshot`. Linked paths and submodules are the checkout's: they are no
    part of the change. The worktree, its HEAD and its index stay as they are; its .git file is not read.
    """
    with looking(at, path) as (inside, record):
        return _change(Repository(inside), commit, record.linked)


def _change(repository: Repository, commit: str, linked: Collection[str]) -> WorktreeChange:
    submodules = trees.gitlinks(repository, commit)
    place = repository.at.place
    borrowed = [*linked, *(os.fsdecode(p) for p, _ in submodules)]
    ours = trees.within(borrowed)
    with _index_of(repository, commit) as index:
        _, left = trees.tree_as_it_lies(index, left=ours)
        pinned = b"".join(b"160000 " + pin + b" 0\t" + sub + b"\0" for sub, pin in submodules)
        index.run("update-index", "--replace", "-z", "--index-info", data=pinned)
        tree = index.line("write-tree")
        ignored = index.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        files = index.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", commit, tree)
        patch = bases.patch_between(index, commit, tree) if files else b""
    left += [LeftOut(p, _REPLACED) for p in dict.fromkeys(borrowed) if _replaced(place / p)]
    left += [LeftOut(os.fsdecode(p), "git ignores it") for p in ignored if not ours(p) and not _cache(p)]
    return WorktreeChange(patch, tuple(os.fsdecode(f) for f in files), untracked.capped(left))


@contextmanager
def _index_of(repository: Repository, commit: str) -> Iterator[Repository]:
    """An index that holds `commit`, with the times of the worktree's own where it can be read."""
    with repository.index(copied=True) as index:
        arguments = ("read-tree", "--reset", "--no-sparse-checkout", commit)
        if index.ask(*arguments).status == 0:
            yield index
            return
    with repository.index(copied=False) as index:
        index.run("read-tree", commit)
        yield index


def _replaced(path: Path) -> bool:
    """Tell whether a link to the checkout was replaced; git leaves an empty folder."""
    return not path.is_symlink() and (path.is_file() or (path.is_dir() and any(path.iterdir())))


def _cache(path: bytes) -> bool:
    name = os.fsdecode(path).rstrip("/")
    return name.endswith((".pyc", ".pyo")) or any(part in _CACHES for part in name.split("/"))
