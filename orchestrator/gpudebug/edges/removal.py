"""The only owner of removals: nothing goes that is not proven to be gpudebug's own.

A removal takes an open folder and a name in it, never a path: a path can mean another place by the time it
is used. It follows no link, stays on one file system, and compares device and inode with those recorded
when gpudebug made the thing.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener

_FOLDER = opener.flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
# Deeper folders are moved up first: an open descriptor a level would run out.
_DEEPEST = 64
_IS_LINK = (errno.ELOOP, errno.ENOTDIR)
# RENAME_NOREPLACE of renameat2(2).
_NOT_OVER = 1
# Of statx(2): its flags, the size of what it fills, and the mask and the time of birth in that.
_AT_EMPTY_PATH, _STATX_BTIME, _STATX_SIZE = 0x1000, 0x800, 256
_STATX = struct.Struct("=I76xqI")


class NotOurs(StoreError):
    """What has this name is not what gpudebug made; it was left as it is."""


class Identity(NamedTuple):
    """Device and inode of a file or folder: what a name cannot change."""

    device: int
    inode: int


def identity_of(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino)


def identity_at(parent: int, name: str) -> Identity | None:
    """The identity of what `name` in the open folder `parent` is, a link itself included; None if missing."""
    try:
        return identity_of(os.stat(_plain(name), dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        return None


def made_at(parent: int, name: str) -> Identity:
    """The identity of what `name` in the open folder `parent` is; FileNotFoundError if it is missing."""
    return identity_of(os.stat(_plain(name), dir_fd=parent, follow_symlinks=False))


def born(descriptor: int) -> int | None:
    """When an open file was made, in nanoseconds since the epoch; None if the file system does not tell.

    A file system may hand out the inode of what was removed at once; the moment is another one then.
    Source: statx(2).
    """
    import ctypes

    found = ctypes.create_string_buffer(_STATX_SIZE)
    try:
        failed = ctypes.CDLL(None).statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, found)
    except AttributeError:
        return None
    mask, seconds, nanoseconds = _STATX.unpack_from(found)
    return None if failed or not mask & _STATX_BTIME else seconds * 10**9 + nanoseconds


def give_owner_rights(parent: int, name: str) -> None:
    """Let the owner of the folder `name` of `parent` open it and write to it.

    The descriptor names it without opening it or following a link.
    """
    handle = os.open(_plain(name), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        mode = os.fstat(handle).st_mode
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode) | stat.S_IRWXU)
    finally:
        os.close(handle)


@contextmanager
def folder(anchor: Path, *names: str, linked: str | None = None) -> Iterator[int]:
    """Open `anchor/names…` for the block, following no link below `anchor` but one that is named `linked`.

    NotOurs if one of the names is a link or a file, or `linked` leads to another user's folder; OSError if
    one is missing or may not be opened.
    """
    descriptor = os.open(anchor, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        at = anchor
        for name in names:
            at = at / name
            below = _followed(descriptor, name, at) if name == linked else _opened(descriptor, name, at)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def remove_file(parent: int, name: str, made: Identity) -> None:
    """Unlink the file `name` of the open folder `parent`; nothing if it is missing.

    NotOurs if it is another file than `made`, or a folder.
    """
    try:
        status = os.stat(_plain(name), dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if identity_of(status) != made or stat.S_ISDIR(status.st_mode):
        raise _not_ours(parent, name)
    # A process that swaps it now may write to this folder, and could unlink that name without us.
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def remove_folder(parent: int, name: str, made: Identity) -> None:
    """Remove the folder `name` of the open folder `parent` with all in it; nothing if it is missing.

    Links in it are unlinked, not followed; closed folders in it are opened first. NotOurs, and nothing
    removed, if it is another folder than `made`, a link or a file; NotOurs at a mount inside of it.
    """
    try:
        top = _opened(
            parent, name, Path(_path_of(parent), name), closed_too=identity_at(parent, name) == made
        )
    except FileNotFoundError:
        return
    try:
        if identity_of(os.fstat(top)) != made:
            raise _not_ours(parent, name)
        _empty(top, made.device)
    finally:
        os.close(top)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=parent)


def remove_empty(parent: int, name: str) -> bool:
    """Remove the folder `name` of the open folder `parent` if it is empty; whether it was."""
    try:
        os.rmdir(_plain(name), dir_fd=parent)
    except OSError:
        return False
    return True


def put_file(parent: int, temporary: str, name: str) -> None:
    """Rename the file `temporary` of the open folder `parent` to `name`: a file of that name is replaced."""
    os.rename(_plain(temporary), _plain(name), src_dir_fd=parent, dst_dir_fd=parent)


def move_folder(parent: int, name: str, to: str, made: Identity) -> None:
    """Rename the folder `name` of the open folder `parent` to the free name `to`.

    FileExistsError if `to` is taken, also by an empty folder. NotOurs, and `name` as it was, if another
    folder than `made` has that name by now.
    """
    if identity_at(parent, name) != made:
        raise _not_ours(parent, name)
    _rename_to_free(parent, name, _plain(to), parent)
    if identity_at(parent, to) != made:
        _rename_to_free(parent, to, name, parent)
        raise _not_ours(parent, name)


def set_aside(parent: int, name: str, to: str, *, into: int | None = None) -> None:
    """Give what is at `name` in the open folder `parent`, whatever it is, the free name `to`: there, or in
    the open folder `into`."""
    _rename_to_free(parent, _plain(name), _plain(to), parent if into is None else into)


def _rename_to_free(parent: int, name: str, to: str, into: int) -> None:
    """Rename without replacing what `to` is; looked at first on a file system that cannot do both at once."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    rename: Any = getattr(library, "renameat2", None)
    if rename is not None:
        if rename(parent, os.fsencode(name), into, os.fsencode(to), _NOT_OVER) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number), name)
    if identity_at(into, to) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), to)
    os.rename(name, to, src_dir_fd=parent, dst_dir_fd=into)


def _empty(top: int, device: int) -> None:
    """Remove all that is in the open folder `top`, without recursion: a tree may be 10,000 folders deep."""
    opened: list[tuple[int, str]] = [(top, "")]
    try:
        while opened:
            parent, name = opened[-1]
            below = _first_folder(parent, top if len(opened) > _DEEPEST else None, device)
            if below is not None:
                opened.append(below)
                continue
            opened.pop()
            if opened:
                os.close(parent)
                with suppress(FileNotFoundError):
                    os.rmdir(name, dir_fd=opened[-1][0])
    finally:
        for descriptor, _ in opened[1:]:
            os.close(descriptor)


def _first_folder(parent: int, upwards: int | None, device: int) -> tuple[int, str] | None:
    """Unlink files of `parent` up to its first folder, opened; None if it has none.

    With `upwards` its folders are moved there, to be met again later.
    """
    with os.scandir(parent) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=parent)
            elif upwards is not None:
                os.rename(entry.name, os.urandom(16).hex(), src_dir_fd=parent, dst_dir_fd=upwards)
            else:
                below = _opened(parent, entry.name, Path(_path_of(parent), entry.name), closed_too=True)
                if os.fstat(below).st_dev != device:
                    path = _path_of(below)
                    os.close(below)
                    raise NotOurs("is a mount inside of a folder of gpudebug's", file=path, next="unmount it")
                return below, entry.name
    return None


def _followed(parent: int, name: str, path: Path) -> int:
    """Open the folder `name` of `parent`, or the user's own folder that a link of that name leads to."""
    descriptor = os.open(_plain(name), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    if os.fstat(descriptor).st_uid != os.geteuid() and _is_link(parent, name):
        os.close(descriptor)
        raise NotOurs("leads to a folder of another user", file=str(path), next="move it away")
    return descriptor


def _is_link(parent: int, name: str) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _opened(parent: int, name: str, path: Path, *, closed_too: bool = False) -> int:
    """Open the folder `name` of `parent`, no link; `closed_too` gives its owner all rights to it."""
    try:
        try:
            descriptor = os.open(_plain(name), _FOLDER, dir_fd=parent)
        except PermissionError:
            if not closed_too:
                raise
            give_owner_rights(parent, name)
            descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except OSError as e:
        if e.errno not in _IS_LINK:
            raise
        raise NotOurs(
            "is a link or a file where a folder of gpudebug's was", file=str(path), next="move it away"
        ) from None
    status = os.fstat(descriptor)
    if closed_too and status.st_uid == os.geteuid() and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
    return descriptor


def _plain(name: str) -> str:
    if not name or name in (".", "..") or "/" in name:
        raise NotOurs(f"{name!r} is not a name of a file in a folder", next="report this")
    return name


def _path_of(descriptor: int) -> str:
    """Return the path of an open file, for a message only."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return "?"


def _not_ours(parent: int, name: str) -> NotOurs:
    return NotOurs(
        "is not what gpudebug made there; it was left as it is",
        file=str(Path(_path_of(parent), name)),
        next="move it away if you do not need it",
    )
