"""After a kill or a slip: worktrees of ours that are half there are repaired or taken away."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from gpudebug.core.errors import BusyError
from gpudebug.edges.snapshot import admin, journal
from gpudebug.edges.snapshot.journal import Journal, Record
from gpudebug.edges.snapshot.repository import Repository, failing, opened
from gpudebug.edges.snapshot.worktrees import sound


def repair(top: Path, folder: Path, keep: Collection[Path] = ()) -> list[str]:
    """Mend or take away the worktrees of ours in `folder` that are not whole; a line for each.

    One that was half-made or half-removed is taken away. One that was whole and lost git's folder is given
    it again if it is in `keep`. What another command is at work on stays, as do whole ones and those that
    are not ours.
    """
    repository, _ = opened(top)
    folder = Path(os.path.realpath(folder))
    kept = {Path(os.path.realpath(path.parent)) / path.name for path in keep}
    told = []
    for path in journal.worktrees_of(folder):
        try:
            with journal.held(path, patience=0) as ours:
                told += _mended(repository, path, ours, path in kept)
        except BusyError:
            continue
    return told + _forgotten(repository, folder)


def _mended(repository: Repository, path: Path, ours: Journal, keep: bool) -> list[str]:
    record = ours.read()
    if record is None or (record.state == "ready" and sound(repository, path, record)):
        return []
    if record.state == "ready" and path.is_dir() and keep:
        _rebuild(repository, path, record)
        return [f"{path.name}: git had forgotten the worktree; it is registered again"]
    said = f"was left half-{'made' if record.state == 'making' else 'removed'}; it is removed"
    if record.state == "ready":
        gone = "its folder was" if not path.exists() else "git's record of it was"
        said = f"{gone} deleted; the worktree is forgotten"
    admin.clear(repository, path, record)
    ours.remove()
    return [f"{path.name}: {said}"]


def _rebuild(repository: Repository, path: Path, record: Record) -> None:
    """Write git's folder of a worktree again as gitrepository-layout(5) has it, with a new index.

    Each step may be done twice; the mark comes last.
    """
    folder = admin.of(repository, path, record) or _unused(repository, record.id)
    with failing("register a worktree again", folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "HEAD").exists():
            (folder / "HEAD").write_text(record.commit + "\n")
        (folder / "commondir").write_text("../..\n")
        (folder / "gitdir").write_bytes(os.fsencode(path / ".git") + b"\n")
        (path / ".git").write_bytes(b"gitdir: " + os.fsencode(folder) + b"\n")
    if not (folder / "index").exists():
        Repository(path).run("read-tree", record.commit)
    admin.mark(folder, record.token, path)


def _unused(repository: Repository, name: str) -> Path:
    """A name for git's folder that no other worktree has taken in the meantime."""
    place, number = repository.common / "worktrees", 0
    while (place / f"{name}{number or ''}").exists():
        number += 1
    return place / f"{name}{number or ''}"


def _forgotten(repository: Repository, folder: Path) -> list[str]:
    """Git's folders of worktrees of ours whose own folder and journal were deleted by hand."""
    told = []
    for found in admin.folders(repository):
        path = admin.path_of(found)
        if admin.token_of(found) is None or path is None or path.parent != folder:
            continue
        if not os.path.lexists(path) and not journal.file_of(path).exists():
            admin.remove(repository, found)
            told.append(f"{path.name}: its folder was deleted; the worktree is forgotten")
    return told
