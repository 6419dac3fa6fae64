"""Files and folders on their way to a name: complete before they get it, swept if their writer was killed.

The name of a temporary holds its own inode, so that the name proves who made it: a file of such a name that
is another one stays. Its writer holds a flock on it; what is free of one was left by a kill.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gpudebug.edges import removal
from gpudebug.edges.opener import Unconfirmed
from gpudebug.edges.removal import Identity, identity_of

_PREFIX, _SUFFIX = ".gpudebug-", ".tmp"
_BORN = re.compile(r"\.gpudebug-new-[0-9a-f]{32}\.tmp")
_NAMED = re.compile(r"\.gpudebug-([0-9a-f]{1,16})-[0-9a-f]{16}\.tmp")
_TRIES = 100
# File systems that know no fsync of a folder say one of these.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


class Made(NamedTuple):
    """A temporary: its descriptor, which holds its lock, its name and what it is."""

    fd: int
    name: str
    identity: Identity


def write(
    parent: int, name: str, data: bytes, mode: int | None, check: Callable[[], None] = lambda: None
) -> None:
    """Make `data` all that the file `name` of the open folder `parent` holds, at once and durably.

    `mode` None is that of a new file under the umask. `check` is asked last: what it raises leaves the old
    file. OSError: the old file is unchanged; Unconfirmed: it holds the new bytes.
    """
    sweep(parent)
    made = _new_file(parent, 0o666 if mode is None else 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(made.fd, rest) :]
        if mode is not None:
            os.fchmod(made.fd, mode)
        os.fsync(made.fd)
        check()
        removal.put_file(parent, made.name, name)
    except BaseException:
        # What cannot be removed now is swept by the next write.
        with suppress(OSError, removal.NotOurs):
            removal.remove_file(parent, made.name, made.identity)
        raise
    finally:
        os.close(made.fd)
    confirm(parent)


def confirm(parent: int) -> None:
    """Wait until the names in the open folder are on disk. Unconfirmed if the file system says otherwise."""
    try:
        os.fsync(parent)
    except OSError as e:
        if e.errno not in _NO_SYNC:
            raise Unconfirmed(e.errno, e.strerror) from None


@contextmanager
def new_folder(parent: int) -> Iterator[Made]:
    """A new folder in the open folder `parent`, mode 0700, locked until the end of the block."""
    made = _named(parent, lambda name: _bear_folder(parent, name))
    try:
        yield made
    finally:
        os.close(made.fd)


class Workplace(NamedTuple):
    """A private folder for as long as a block lasts: its absolute path, its descriptor and what it is."""

    path: Path
    fd: int
    identity: Identity


@contextmanager
def workplace(prefix: str, within: Path | None = None) -> Iterator[Workplace]:
    """A new folder in `within`, or where the system keeps temporary files, mode 0700; afterwards it is gone
    with all that is in it.

    Others may write to the folder around it: what they put in its place stays, and so does what cannot be
    removed.
    """
    place = Path(tempfile.gettempdir()) if within is None else within.absolute()
    name = f"{prefix}{os.urandom(8).hex()}"
    with removal.folder(place) as parent:
        fd = _bear_folder(parent, name)
        try:
            identity = identity_of(os.fstat(fd))
            if os.listdir(fd):
                raise OSError(errno.EAGAIN, "another folder was put in its place", str(place / name))
            try:
                yield Workplace(place / name, fd, identity)
            finally:
                with suppress(OSError, removal.NotOurs):
                    removal.remove_folder(parent, name, identity)
        finally:
            os.close(fd)


def name_of(identity: Identity) -> str:
    """Return a name for a temporary that proves what it is."""
    return f"{_PREFIX}{identity.inode:x}-{os.urandom(8).hex()}{_SUFFIX}"


def left(parent: int) -> Iterator[Made]:
    """The temporaries in the open folder `parent` that a killed writer of this user left, each locked."""
    for name in os.listdir(parent):
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            made = _taken(parent, name)
            if made is not None:
                try:
                    yield made
                finally:
                    os.close(made.fd)


def sweep(parent: int) -> None:
    """Remove the files that killed writers left in the open folder `parent`; a failure leaves them."""
    with suppress(OSError):
        for made in left(parent):
            if stat.S_ISREG(os.fstat(made.fd).st_mode):
                with suppress(OSError, removal.NotOurs):
                    removal.remove_file(parent, made.name, made.identity)
            elif _BORN.fullmatch(made.name):
                removal.remove_empty(parent, made.name)


def _taken(parent: int, name: str) -> Made | None:
    """Return a temporary that is proven ours and free of a writer, open and locked; None if it is not."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) or not _ours(name, status):
            return None
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return None
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Under the lock: a writer may have named or filled it meanwhile.
        if removal.identity_at(parent, name) == identity_of(os.fstat(fd)) and _ours(name, os.fstat(fd)):
            return Made(fd, name, identity_of(os.fstat(fd)))
    except OSError:
        pass
    os.close(fd)
    return None


def _ours(name: str, status: os.stat_result) -> bool:
    if status.st_uid != os.geteuid():
        return False
    if _BORN.fullmatch(name):
        # Nothing is lost with an empty one.
        return stat.S_ISDIR(status.st_mode) or status.st_size == 0
    named = _NAMED.fullmatch(name)
    return named is not None and int(named[1], 16) == status.st_ino


def _new_file(parent: int, mode: int) -> Made:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return _named(parent, lambda name: os.open(name, flags, mode, dir_fd=parent))


def _bear_folder(parent: int, name: str) -> int:
    os.mkdir(name, 0o700, dir_fd=parent)
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        removal.remove_empty(parent, name)
        raise


def _named(parent: int, bear: Callable[[str], int]) -> Made:
    """Make something empty, lock it and give it the name that proves what it is."""
    import fcntl

    for _ in range(_TRIES):
        born = f"{_PREFIX}new-{os.urandom(16).hex()}{_SUFFIX}"
        fd = bear(born)
        identity = identity_of(os.fstat(fd))
        try:
            # A file system without locks has none that a sweep could take either.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            name = name_of(identity)
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                removal.move_folder(parent, born, name, identity)
            else:
                removal.put_file(parent, born, name)
        except (FileNotFoundError, removal.NotOurs):
            # Swept before it was locked.
            os.close(fd)
        except BaseException:
            os.close(fd)
            with suppress(OSError, removal.NotOurs):
                _unmake(parent, born, identity)
            raise
        else:
            return Made(fd, name, identity)
    raise OSError(errno.EAGAIN, "its temporary name is taken away again and again")


def _unmake(parent: int, name: str, identity: Identity) -> None:
    if not removal.remove_empty(parent, name):
        removal.remove_file(parent, name, identity)
