"""After a kill or a slip: worktrees of ours that are half there are repaired or taken away."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpudebug.core.errors import BusyError
from gpudebug.edges import removal
from gpudebug.edges.git import admin, grounds, journal, refs
from gpudebug.edges.git.journal import Journal, WorktreeRecord
from gpudebug.edges.git.repository import Repository, opened
from gpudebug.edges.git.worktrees import forget_gone, sound


def repair(top: Path, folder: Path, written: Callable[[str], bool] = lambda name: False) -> list[str]:
    """Mend or take away the worktrees of ours in `folder` that are not whole; a line for each.

    One that was half-made or half-removed is taken away. One that was whole and lost git's folder is given
    it again if a file may have been `written` in one of its name; where git cannot have it again, it is left
    to its user. What another command is at work on stays, as do whole ones and those that are not ours.
    Locks that a killed git of ours left go too.
    """
    repository, _ = opened(top)
    refs.mend(repository)
    lines = []
    _adopt(repository, folder)
    for path in journal.worktrees_of(repository.common, folder):
        try:
            with journal.held(repository.common, path, patience=0) as ours:
                lines += _mended(repository, path, ours, written(path.name))
        except BusyError:
            continue
    return lines + _forgotten(repository, folder)


def _mended(repository: Repository, path: Path, ours: Journal, keep: bool) -> list[str]:
    record = ours.read()
    if record is None:
        return []
    if record.state != "ready":
        half = "made" if record.state == "making" else "removed"
        return _cleared(repository, ours, f"was left half-{half}; it is removed")
    made = admin.is_made(repository.top, record.at(path), record)
    if made is None:
        return _cleared(repository, ours, "its folder was deleted; the worktree is forgotten")
    if not made:
        return _cleared(repository, ours, None)
    if sound(repository, path, record):
        return []
    if keep and repository.ask("cat-file", "-e", f"{record.commit}^{{commit}}").status:
        _disowned(repository, ours, record)
        return [
            f"{path.name}: git has lost the commit that it was made of, so it is no worktree any more; "
            f"{record.at(path)} stays as it is"
        ]
    if keep:
        return _rebuilt(repository, path, ours, record)
    return _cleared(repository, ours, "git's record of it was deleted; the worktree is forgotten")


def _cleared(repository: Repository, ours: Journal, line: str | None) -> list[str]:
    record = ours.read()
    assert record is not None
    left = admin.clear(repository.top, repository.common, ours.path, record)
    ours.remove()
    return left or ([f"{ours.path.name}: {line}"] if line else [])


def _disowned(repository: Repository, ours: Journal, record: WorktreeRecord) -> None:
    folder = admin.proven(repository.common, record)
    if folder is not None:
        admin.disown(folder)
    ours.remove()


def _rebuilt(repository: Repository, path: Path, ours: Journal, record: WorktreeRecord) -> list[str]:
    """Let git know a worktree again whose folder in git's, or whose .git file, is lost or altered.

    Each step may be done twice.
    """
    place = record.at(path)
    with grounds.opened(repository.top, place) as inside:
        if not _file_or_none(inside):
            return [f"{path.name}: {place / '.git'} is a folder: gpudebug ignores it"]
        folder, forgotten = admin.proven(repository.common, record), True
        if folder is None:
            record = admin.renewed(replace(record, path=str(place)))
            ours.write(record)
            record = admin.register(repository, record, ours, inside)
        else:
            forgotten = admin.path_of(folder) != place or not (folder / "index").exists()
            record = replace(record, path=str(place))
            admin.mark(folder, record, path.name)
            admin.point(record, folder, place, inside)
        folder = admin.folder_of(repository.common, record)
        if not (folder / "index").exists():
            within = admin.address_of(repository.common, record, place, inside)
            Repository(within, keep=(ours.descriptor,)).run("read-tree", record.commit)
        ours.write(record)
    if forgotten:
        return [f"{path.name}: git had forgotten the worktree; it is registered again"]
    return [f"{path.name}: its .git file was gone or led elsewhere; it is written again"]


def _file_or_none(inside: int) -> bool:
    """Tell whether the .git of a worktree may be written again: a folder in its place is the user's."""
    if removal.identity_at(inside, ".git") is None:
        return True
    return not stat.S_ISDIR(os.stat(".git", dir_fd=inside, follow_symlinks=False).st_mode)


def _adopt(repository: Repository, folder: Path) -> None:
    """Keep a record of worktrees of ours that have none: 0.1.0 made them, or theirs was lost."""
    known = _places(repository, folder)
    for found in admin.folders(repository.common):
        path, mark = admin.path_of(found), admin.mark_of(found)
        if mark is None or path is None or path.parent != folder or path in known:
            continue
        try:
            with journal.held(repository.common, folder / mark.asked, patience=0) as ours:
                record = admin.adopted(repository, ours) if ours.read() is None else None
                if record is not None:
                    ours.write(record)
        except BusyError:
            continue


def _forgotten(repository: Repository, folder: Path) -> list[str]:
    """Git's folders of worktrees of ours whose own folder and record were deleted by hand."""
    lines = []
    known = _places(repository, folder)
    for found in admin.folders(repository.common):
        path = admin.path_of(found)
        if path is None or path.parent != folder or path in known:
            continue
        if forget_gone(repository.common, path):
            lines.append(f"{path.name}: its folder was deleted; the worktree is forgotten")
    return lines


def _places(repository: Repository, folder: Path) -> set[Path]:
    """Where the worktrees in `folder` that have a record are, under whatever name they were asked for."""
    return {
        record.at(path)
        for path in journal.worktrees_of(repository.common, folder)
        if (record := journal.peek(repository.common, path)) is not None
    }
