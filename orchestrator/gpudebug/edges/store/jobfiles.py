"""Files that a job could write to, looked at afterwards: no link is followed, no FIFO waited for."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from gpudebug.edges import opener, removal
from gpudebug.edges.opener import os_error
from gpudebug.edges.store.files import write_beside
from gpudebug.edges.store.folders import JOB, RECORDS

_CHUNK = 1 << 20


def head_digest(path: Path, length: int) -> str | None:
    """SHA-256 of the first `length` bytes; None if there are fewer, or it is no regular file.

    OSError if it cannot be read.
    """
    file = opener.look(path)
    if file is None:
        return None
    with file:
        if os.fstat(file.fileno()).st_size < length:
            return None
        import hashlib

        found = hashlib.sha256()
        while length and (data := file.read(min(_CHUNK, length))):
            found.update(data)
            length -= len(data)
    return None if length else found.hexdigest()


def size_of(path: Path) -> int | None:
    """Return the size of a regular file; None for anything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def cut(path: Path, length: int) -> None:
    """Shorten a regular file to `length` bytes; nothing for anything else."""
    with suppress(OSError):
        fd = opener.descriptor(path, os.O_WRONLY)
        try:
            if os.fstat(fd).st_size > length:
                os.ftruncate(fd, length)
        finally:
            os.close(fd)


def strangers(folder: Path, ours: Collection[str]) -> list[str]:
    """Return the names in a run folder that are not `ours`: what the job put beside its folders, or in the
    place of that of its records."""
    known = {*ours, JOB}
    if stat.S_ISDIR((folder / RECORDS).lstat().st_mode if os.path.lexists(folder / RECORDS) else 0):
        known.add(RECORDS)
    return sorted(name for name in os.listdir(folder) if name not in known)


def regain(folder: Path) -> None:
    """Let its owner look into a run folder and write to it, whatever the job made of its rights."""
    with suppress(OSError), removal.folder(folder.parent) as runs:
        removal.give_owner_rights(runs, folder.name)


def put_aside(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Move files, folders or links of a run folder into its job's folder, as they are: name -> new path.

    What cannot be moved stays.
    """
    moved: dict[str, str] = {}
    if not names:
        return moved
    job = _job(folder)
    with removal.folder(folder) as run, removal.folder(folder, job) as aside:
        for name in names:
            new = f"{name}.{secrets.token_hex(4)}"
            with suppress(OSError):
                try:
                    removal.set_aside(run, name, new, into=aside)
                except PermissionError:
                    # A folder that is closed to its owner cannot get another parent.
                    removal.give_owner_rights(run, name)
                    removal.set_aside(run, name, new, into=aside)
                moved[name] = f"{job}/{new}"
    return moved


def _job(folder: Path) -> str:
    """Return the name of the job's folder; a new one if the job put something else in its place."""
    with suppress(OSError, removal.NotOurs), removal.folder(folder, JOB):
        return JOB
    aside = f".{JOB}.{secrets.token_hex(4)}"
    with removal.folder(folder) as run:
        replaced = removal.identity_at(run, JOB) is not None
        if replaced:
            removal.set_aside(run, JOB, aside)
        os.mkdir(JOB, 0o700, dir_fd=run)
        if replaced:
            with removal.folder(folder, JOB) as job:
                removal.set_aside(run, aside, aside, into=job)
    return JOB


def read_of(folder: Path, name: str, most: int, *, of: str = RECORDS) -> bytes | None:
    """Up to `most` bytes of a regular file of the folder `of` of a run folder; None without one."""
    return _head(folder / of, name, most)


def copy_up(folder: Path, name: str, most: int, *, of: str = RECORDS) -> bool:
    """Copy up to `most` bytes of a file of the folder `of` into the run folder; False without one."""
    data = _head(folder / of, name, most)
    if data is None:
        return False
    try:
        write_beside(folder / name, data, 0o600)
    except OSError as e:
        raise os_error(e, folder / name, "cannot write") from None
    return True


def _head(folder: Path, name: str, most: int) -> bytes | None:
    try:
        with removal.folder(folder.parent, folder.name) as at, opener.opened(name, at=at) as file:
            return opener.read(file, most)
    except (OSError, removal.NotOurs):
        return None


def move_up(folder: Path, name: str, most: int) -> bool:
    """Move a regular file of at most `most` bytes out of the job's folder, over nothing; whether it was."""
    try:
        with removal.folder(folder) as run, removal.folder(folder, JOB) as job:
            status = os.stat(name, dir_fd=job, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return False
            removal.set_aside(job, name, name, into=run)
    except (OSError, removal.NotOurs):
        return False
    return True


def names_in(folder: Path, of: str) -> list[str]:
    """Return what lies in the folder `of` of a run folder; nothing if that is no folder any more."""
    try:
        with removal.folder(folder, of) as opened:
            return sorted(os.listdir(opened))
    except (OSError, removal.NotOurs):
        return []
