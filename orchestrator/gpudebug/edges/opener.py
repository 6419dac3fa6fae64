"""The one door to files that somebody else can put in our way.

Each is opened without waiting and, unless a person named it, not through a link; what is no regular file is
refused before a byte of it is read. No more memory is set aside than the file is long.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import operator
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gpudebug.core.errors import StoreError


def flags(*names: str) -> int:
    """Return the flags of open(2) of these names, those that this system has."""
    return functools.reduce(operator.or_, (getattr(os, name, 0) for name in names))


# Without O_BINARY Windows changes the ends of lines.
_ALWAYS = flags("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY")
_NO_LINK = flags("O_NOFOLLOW")
_LONGEST = 256 << 20
# What a file may grow by while it is read; those of some file systems have no size.
_GROWTH = 1 << 16
_HUGE = 1 << 30
# What `open` says of a FIFO without a reader, a socket or a folder that is to be written to.
_OTHER_KINDS = (errno.ENXIO, errno.EISDIR, errno.ENODEV)


class NotRegular(OSError):
    """The name is not a regular file's: a FIFO's, a device's, a socket's, a folder's, or a link's."""


class Unconfirmed(OSError):
    """It was written and has its name, but the file system did not confirm that it is on disk."""


class NotPermitted(StoreError):
    """The file is another user's, or closed to this one."""


def descriptor(
    path: Path | str,
    access: int = os.O_RDONLY,
    mode: int = 0o600,
    *,
    at: int | None = None,
    follow: bool = False,
) -> int:
    """Open a regular file, below the open folder `at` if one is given. OSError; NotRegular for other kinds.

    With `follow`, which is for paths that a person named, a link is as good as its target.
    """
    try:
        fd = os.open(path, access | _ALWAYS | (0 if follow else _NO_LINK), mode, dir_fd=at)
    except OSError as e:
        if e.errno == errno.ELOOP and not follow:
            raise NotRegular(e.errno, "is a link", str(path)) from None
        if e.errno in _OTHER_KINDS:
            raise NotRegular(e.errno, "not a regular file", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular(errno.EINVAL, "not a regular file", str(path))
    return fd


def opened(path: Path | str, *, at: int | None = None, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading. OSError as `descriptor`."""
    return os.fdopen(descriptor(path, at=at, follow=follow), "rb")


def look(path: Path, *, follow: bool = False) -> BinaryIO | None:
    """Open a regular file for reading; None for anything else, and for what may not be read."""
    try:
        return opened(path, follow=follow)
    except OSError:
        return None


def read(file: BinaryIO, most: int) -> bytes:
    """Return at most `most` bytes, from where `file` stands: those that are there."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    return file.read(min(most, max(0, left) + _GROWTH))


def read_file(path: Path, longest: int = _LONGEST, *, follow: bool = False) -> bytes:
    """Return the bytes of a regular file of at most `longest`. StoreError, NotPermitted."""
    with saying(path, "cannot read"), opened(path, follow=follow) as file:
        if os.fstat(file.fileno()).st_size > longest:
            raise StoreError(
                f"larger than {longest >> 20} MB", file=str(path), next="is this the right file?"
            )
        return read(file, longest)


def read_head(path: Path, size: int, start: int = 0, *, follow: bool = False) -> bytes:
    """Return the first bytes of a regular file of any size, or the first behind `start`. As `read_file`."""
    with saying(path, "cannot read"), opened(path, follow=follow) as file:
        file.seek(start)
        return read(file, size)


def read_tail(path: Path, size: int, *, follow: bool = False) -> bytes:
    """Return the last bytes of a regular file of any size. As `read_file`."""
    with saying(path, "cannot read"), opened(path, follow=follow) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return read(file, size)


def is_hole(status: os.stat_result) -> bool:
    """Tell whether a file is huge and mostly a hole: nothing reads such a one."""
    return status.st_size > _HUGE and getattr(status, "st_blocks", _HUGE) * 512 < status.st_size // 2


def file_digest(path: Path, *, follow: bool = False) -> str:
    """SHA-256 of what a file holds; of a huge one that is mostly a hole, which nothing reads, its size.

    StoreError as `read_file`.
    """
    import hashlib

    found = hashlib.sha256()
    with saying(path, "cannot read"), opened(path, follow=follow) as file:
        status = os.fstat(file.fileno())
        if is_hole(status):
            return f"unread-{status.st_size}-bytes-with-holes"
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


_PLAIN = "put a plain file in its place, or move it away"
_NEXT = {
    errno.ENOSPC: "free some disk space and run the same command again",
    errno.EDQUOT: "free some of your disk quota and run the same command again",
    errno.EROFS: "make the file system writable, or work in a writable copy",
    errno.EACCES: "give yourself permission to it (chmod, chown)",
    errno.EPERM: "give yourself permission to it (chmod, chown)",
    errno.ENOENT: "check the path",
}


def os_error(e: OSError, path: Path, what: str) -> StoreError:
    """Return the error of one line for an OSError: `what` happened to `path`, why, and what to do next."""
    if isinstance(e, NotRegular):
        return StoreError(str(e.strerror), file=str(path), next=_PLAIN)
    reason = os.strerror(e.errno) if e.errno else str(e)
    if isinstance(e, Unconfirmed):
        return StoreError(
            f"was written, but the disk does not confirm it: {reason}",
            file=str(path),
            next="check the disk (dmesg), then run the same command again",
        )
    kind = NotPermitted if e.errno in (errno.EACCES, errno.EPERM) else StoreError
    return kind(f"{what}: {reason}", file=str(path), next=_NEXT.get(e.errno or 0, "mend it and run again"))


@contextlib.contextmanager
def saying(path: Path, what: str) -> Iterator[None]:
    """One line for an OSError of the block: `what` happened to `path`, and why."""
    try:
        yield
    except OSError as e:
        raise os_error(e, path, what) from None
