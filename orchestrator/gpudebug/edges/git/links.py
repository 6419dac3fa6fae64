"""What a worktree borrows from the checkout by links, and what changed there meanwhile."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gpudebug.core.errors import GitError
from gpudebug.edges import removal
from gpudebug.edges.git import trees
from gpudebug.edges.git.grounds import failing
from gpudebug.edges.git.repository import Repository
from gpudebug.edges.walk import walk

# A virtual environment has 30,000 files; more than this takes seconds to look at.
MOST_FILES = 100_000
NAMED = 20


def link_all(
    repository: Repository, worktree: Path, commit: str, links: Sequence[str], checkout: Path
) -> tuple[list[str], list[str]]:
    """Link `links` (relative to `checkout`) and checked-out submodules into `worktree`.

    Returns the linked paths, relative to the worktree, and notes. What the worktree has already, because
    git tracks it, stays its own: of such a folder the other files are linked, one by one.
    """
    linked: list[str] = []
    notes: list[str] = []
    inside = os.path.relpath(checkout, repository.top)
    for name in links:
        source = checkout / _checked(name, checkout)
        if not os.path.lexists(source):
            notes.append(f"worktree.link: {name} is missing, so it is not linked")
            continue
        target = worktree / os.path.normpath(os.path.join(inside, name))
        found = list(_link(source, target, worktree))
        if not found and not target.is_symlink():
            notes.append(f"worktree.link: {name} is tracked by git: the worktree has its own copy")
        linked += found
    for path, _ in trees.gitlinks(repository, commit):
        linked += _link_submodule(repository.top, worktree, os.fsdecode(path))
    return linked, notes


def _checked(name: str, checkout: Path) -> str:
    """Return a name of worktree.link that lies in the checkout, whatever it is a link to."""
    parts = PurePosixPath(os.path.normpath(name)).parts
    why = None
    if os.path.isabs(name) or ".." in parts or not parts:
        why = "is not a path inside the repository"
    elif ".git" in (part.lower() for part in parts):
        why = "is git's own"
    elif parts[0] == "runs":
        why = "is where gpudebug keeps runs and worktrees"
    else:
        home = os.path.realpath(checkout)
        parent = os.path.realpath(checkout / os.path.dirname(os.path.normpath(name)))
        if parent != home and not parent.startswith(home + os.sep):
            why = "lies behind a link that leads out of the repository"
    if why is not None:
        raise GitError(
            f"worktree.link: {name!r} {why}", file=str(checkout), next="name a folder or file of the checkout"
        )
    return os.path.normpath(name)


def _link(source: Path, target: Path, worktree: Path) -> Iterator[str]:
    with failing("link into a worktree", target):
        if not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
            yield target.relative_to(worktree).as_posix()
            return
        if target.is_symlink() or source.is_symlink() or not (target.is_dir() and source.is_dir()):
            return
        children = sorted(os.listdir(source))
    for child in children:
        yield from _link(source / child, target / child, worktree)


def _link_submodule(top: Path, worktree: Path, path: str) -> Iterator[str]:
    """Git leaves an empty folder for a submodule; one that is not checked out stays so, as it is there."""
    source, target = top / path, worktree / path
    if not os.path.lexists(source / ".git"):
        return
    with failing("link a submodule into a worktree", target):
        if target.is_dir() and not target.is_symlink():
            with removal.folder(target.parent) as parent:
                removal.remove_empty(parent, target.name)
        if not os.path.lexists(target):
            target.symlink_to(source)
    yield path


class Fingerprint(NamedTuple):
    """What was seen of linked files: kind, size and time of change of each. `whole`: no limit was met."""

    files: dict[str, tuple[int, int, int]]
    whole: bool


def fingerprint(checkout: Path, links: Iterable[str]) -> Fingerprint:
    """Look at the files below `links` in the checkout, without the byte code that imports write."""
    files: dict[str, tuple[int, int, int]] = {}
    for name in links:
        for path, found in _files(checkout / name):
            if len(files) >= MOST_FILES:
                return Fingerprint(files, whole=False)
            relative = os.path.relpath(path, checkout)
            files[relative] = (stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns)
    return Fingerprint(files, whole=True)


def _files(start: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files and links below `start`, which is followed where it is a link itself. Unreadable ones are not."""
    if not start.is_dir():
        try:
            yield str(start), os.stat(start)
        except OSError:
            return
        return
    for place, folders, names in walk(start):
        folders[:] = sorted(f for f in folders if f not in ("__pycache__", ".git"))
        links = [f for f in folders if os.path.islink(os.path.join(place, f))]
        for name in sorted([*names, *links]):
            if not name.endswith((".pyc", ".pyo")):
                path = os.path.join(place, name)
                try:
                    yield path, os.lstat(path)
                except FileNotFoundError:
                    continue


def linked_changes(checkout: Path, links: Sequence[str], seen: bytes) -> list[str]:
    """The linked files that were made, changed or removed since `seen`: at most NAMED, then how many more."""
    try:
        facts = json.loads(seen)
        files = {str(path): (int(a), int(b), int(c)) for path, (a, b, c) in facts["files"].items()}
        since = Fingerprint(files, bool(facts["whole"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    now = fingerprint(checkout, links)
    paths = (
        now.files.keys() | since.files.keys() if now.whole and since.whole else now.files.keys() & since.files
    )
    changed = sorted(p for p in paths if now.files.get(p) != since.files.get(p))
    more = [f"… and {len(changed) - NAMED:,} more"] if len(changed) > NAMED else []
    return changed[:NAMED] + more
