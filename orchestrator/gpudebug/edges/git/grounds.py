"""The folders that gpudebug works in, opened without following a link: worktrees', and its own in git's."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpudebug.core.errors import BusyError, GitError
from gpudebug.edges import opener, removal
from gpudebug.edges.git.address import PATIENCE_S, answer, find, start
from gpudebug.edges.removal import Identity

PRIVATE = "gpudebug"
_ALONE = "alone"
_POLL_S = 0.01
_RUNS = "runs"


@contextmanager
def failing(doing: str, path: Path) -> Iterator[None]:
    """Turns what the file system refuses into one line."""
    try:
        yield
    except OSError as e:
        advice = "see that the disk has room"
        if isinstance(e, (PermissionError, FileExistsError, NotADirectoryError, IsADirectoryError)):
            advice = "see whose it is, and move it away if you do not need it"
        raise GitError(f"cannot {doing}: {e.strerror or e}", file=str(path), next=advice) from None


@contextmanager
def alone(common: Path) -> Iterator[int]:
    """Wait until no other gpudebug is in here for git's common folder; a descriptor for git to inherit.

    It locks a file, since NFS keeps a lock on a folder to the host. If the file system has no locks, it does
    not wait. BusyError if it is locked for longer than a git may take.
    """
    with private(common) as folder, failing("open", common / PRIVATE / _ALONE):
        descriptor = opener.descriptor(_ALONE, os.O_RDWR | os.O_CREAT, at=folder)
    try:
        _wait_for(descriptor, common / PRIVATE / _ALONE)
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise BusyError(
                    "another command works in git's folder",
                    file=str(path),
                    next="wait for it, on each host that uses this repository, then run this again",
                ) from None
        except OSError:
            return None
        time.sleep(_POLL_S)


@contextmanager
def private(common: Path, *names: str) -> Iterator[int]:
    """Open a folder of gpudebug's own in git's common folder, made if it is missing, for the owner only.

    GitError if another user owns it.
    """
    place = common.joinpath(PRIVATE, *names)
    with failing("make a folder", place):
        _make(common, (PRIVATE, *names), 0o700)
        opened = removal.folder(common, PRIVATE, *names)
        descriptor = opened.__enter__()
    try:
        refuse_foreign(os.fstat(descriptor), place)
        yield descriptor
    finally:
        opened.__exit__(None, None, None)


def refuse_foreign(status: os.stat_result, path: Path) -> None:
    """Nothing that another user wrote says what may be done here."""
    if status.st_uid not in (os.geteuid(), 0):
        raise GitError(
            "belongs to another user, so gpudebug does not believe it",
            file=str(path),
            next="run gpudebug as that user, or move it away",
        )


@contextmanager
def folder_of(top: Path, path: Path, *, make: bool = False) -> Iterator[int]:
    """Open the folder that `path` lies in, below the work tree `top`; FileNotFoundError if it is missing.

    removal.NotOurs if a part of the way is a link.
    """
    names = _below(top, path.parent)
    if make:
        with failing("make the folder of worktrees", path.parent):
            _make(top, names, 0o777)
    with removal.folder(top, *names, linked=_own_link(top, names)) as descriptor:
        yield descriptor


@contextmanager
def opened(top: Path, path: Path) -> Iterator[int]:
    """Open the folder at `path`, below the work tree `top`. GitError if it is missing."""
    with failing("open a worktree", path):
        names = _below(top, path)
        held = removal.folder(top, *names, linked=_own_link(top, names))
        descriptor = held.__enter__()
    try:
        yield descriptor
    finally:
        held.__exit__(None, None, None)


def identity(top: Path, path: Path) -> Identity | None:
    """Return the identity of what is at `path`; None if nothing is. removal.NotOurs if a link leads there."""
    with suppress(FileNotFoundError), folder_of(top, path) as parent:
        return removal.identity_at(parent, path.name)
    return None


def _below(top: Path, path: Path) -> tuple[str, ...]:
    if not path.is_relative_to(top) or ".." in path.parts:
        raise GitError("lies outside of the repository", file=str(path), next="name a folder inside of it")
    return path.relative_to(top).parts


def _own_link(top: Path, names: tuple[str, ...]) -> str | None:
    """Return the name of a link on the way that is followed: a runs/ that its owner keeps on another disk.

    Git ignores it, so that no clone brings it, and it is the user's, as is the folder that it leads to.
    """
    if _RUNS not in names:
        return None
    link = top.joinpath(*names[: names.index(_RUNS) + 1])
    try:
        own = link.is_symlink() and {link.lstat().st_uid, link.stat().st_uid} == {os.geteuid()}
    except (OSError, RuntimeError):
        return None
    if not own:
        return None
    with suppress(GitError):
        process = start(find(top).at, "check-ignore", "--quiet", "--", str(link))
        answer(process, top)
        return _RUNS if process.returncode == 0 else None
    return None


def _make(anchor: Path, names: tuple[str, ...], mode: int) -> None:
    linked = _own_link(anchor, names)
    for count, name in enumerate(names):
        with removal.folder(anchor, *names[:count], linked=linked) as parent, suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=parent)


def write_file(parent: int, name: str, data: bytes) -> None:
    """Write a file that is not there yet into an open folder, with all of its bytes on the disk."""
    descriptor = opener.descriptor(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, at=parent)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(parent: int, name: str, data: bytes) -> None:
    """Replace a file of gpudebug's own: at each moment it holds the old bytes or the new ones."""
    beside = f"{name}.new"
    drop_file(parent, beside)
    try:
        write_file(parent, beside, data)
        os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        drop_file(parent, beside)
        raise


def drop_file(parent: int, name: str) -> None:
    """Remove a file from a folder that is gpudebug's own."""
    found = removal.identity_at(parent, name)
    if found is not None:
        removal.remove_file(parent, name, found)


def read_file(parent: int | Path, name: str, limit: int = 2**24) -> bytes | None:
    """Return the bytes of a file that gpudebug wrote in its own folder; None if it is missing.

    GitError if it is another user's, a link or no plain file.
    """
    path = parent / name if isinstance(parent, Path) else Path(name)
    try:
        with opener.opened(path, at=None if isinstance(parent, Path) else parent) as file:
            status = os.fstat(file.fileno())
            refuse_foreign(status, path)
            if status.st_size > limit:
                raise GitError("is not a file of gpudebug's", file=str(path), next="move it away")
            return opener.read(file, limit)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise GitError(f"cannot read it: {e.strerror}", file=str(path), next="move it away") from None
