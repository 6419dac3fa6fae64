"""A tree object of what lies in a work tree, made through an index of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.edges.git import untracked
from gpudebug.edges.git.repository import Repository
from gpudebug.edges.git.untracked import LeftOut


def listed(names: Iterable[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def refuse_unmerged(repository: Repository) -> None:
    """A conflict's markers are not code: it would be unknown what was measured."""
    found = repository.names("ls-files", "--unmerged", "-z")
    if found:
        path = os.fsdecode(found[0].partition(b"\t")[2])
        raise GitError(
            "has an unresolved merge conflict",
            file=str(repository.top / path),
            next="resolve it, or git merge --abort",
        )


def tree_as_it_lies(index: Repository, *, left: Callable[[bytes], bool]) -> tuple[str, list[LeftOut]]:
    """Update `index` to the files as they are; the tree, and what stays out of it.

    Untracked paths for which `left` is true stay out unnamed.
    """
    _look_at_all(index)
    index.run("add", "--update", *index.sparse_too)
    others = index.names("ls-files", "-z", "--others", "--exclude-standard")
    taken, left_out = untracked.chosen(index.at.place, [name for name in others if not left(name)])
    index.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=listed(taken))
    return index.line("write-tree"), left_out


def _look_at_all(index: Repository) -> None:
    """Take the marks off the files that git is set not to look at, if they exist: they are what runs."""
    lines = [line.partition(b" ") for line in index.names("ls-files", "-z", "-v")]
    marked = [(tag, path) for tag, _, path in lines if tag == b"S" or tag.islower()]
    there = [(tag, path) for tag, path in marked if os.path.lexists(index.at.place / os.fsdecode(path))]
    for flag, tags in (("--no-assume-unchanged", b"hs"), ("--no-skip-worktree", b"Ss")):
        names = [path for tag, path in there if tag in tags]
        if names:
            index.run("update-index", flag, "-z", "--stdin", data=listed(names))


def gitlinks(repository: Repository, commit: str) -> list[tuple[bytes, bytes]]:
    """Return the submodules of a commit: path and the pinned commit."""
    entries = repository.names("ls-tree", "-r", "-z", commit)
    split = [entry.partition(b"\t") for entry in entries if entry.startswith(b"160000 ")]
    return [(path, head.split(b" ")[2]) for head, _, path in split]


def relative(top: Path, paths: Iterable[Path]) -> list[str]:
    """`paths` relative to the top, those outside of it left out."""
    absolute = [path if path.is_absolute() else top / path for path in paths]
    return [str(path.relative_to(top)) for path in absolute if path != top and path.is_relative_to(top)]


def within(prefixes: Iterable[str]) -> Callable[[bytes], bool]:
    """Return a predicate: is a path one of `prefixes` or below one?"""
    encoded = [os.fsencode(prefix) for prefix in prefixes]
    return lambda path: any(path.rstrip(b"/") == p or path.startswith(p + b"/") for p in encoded)
