"""What somebody changed in a worktree, as a patch against its base."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpudebug.edges.snapshot import bases, journal, trees, untracked
from gpudebug.edges.snapshot.repository import Repository, opened
from gpudebug.edges.snapshot.untracked import LeftOut

# What running and testing leave behind, in everybody's .gitignore.
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints")


@dataclass(frozen=True, slots=True)
class Change:
    """A patch for `git apply`, the files that it changes, and what lies in the worktree but not in it."""

    patch: bytes
    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def worktree_change(path: Path, commit: str) -> Change:
    """The files of the worktree at `path` against `commit`, whatever was committed or staged there.

    Untracked files come along as in `snapshot`. Linked paths and submodules are the checkout's: they are no
    part of the change. The worktree, its HEAD and its index stay as they are.
    """
    repository, _ = opened(path)
    linked = _linked(path)
    submodules = trees.gitlinks(repository, commit)
    ours = trees.within([*linked, *(os.fsdecode(p) for p, _ in submodules)])
    with _index_of(repository, commit) as index:
        _, left = trees.tree_as_it_lies(index, left=ours)
        pinned = b"".join(b"160000 " + pin + b" 0\t" + sub + b"\0" for sub, pin in submodules)
        index.run("update-index", "--replace", "-z", "--index-info", data=pinned)
        tree = index.line("write-tree")
        ignored = index.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    left += [LeftOut(os.fsdecode(p), "git ignores it") for p in ignored if not ours(p) and not _cache(p)]
    files = repository.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", commit, tree)
    patch = bases.patch_between(repository, commit, tree) if files else b""
    return Change(patch, tuple(os.fsdecode(f) for f in files), untracked.capped(left))


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


def _linked(path: Path) -> Collection[str]:
    record = journal.peek(path)
    return record.linked if record is not None else ()


def _cache(path: bytes) -> bool:
    name = os.fsdecode(path).rstrip("/")
    return name.endswith((".pyc", ".pyo")) or any(part in _CACHES for part in name.split("/"))
