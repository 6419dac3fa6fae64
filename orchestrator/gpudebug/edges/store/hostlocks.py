"""One lock a GPU, by UUID, for every repository and every user of this host.

For each device there is an empty file whose flock is the lock, and for each user another that says who holds
it: believed only while its own flock is held, and only if it belongs to that user. So no process is named
that is gone, and no user needs the right to write what another user wrote.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import opener, removal
from gpudebug.edges.opener import os_error
from gpudebug.edges.store.locks import flock, read_text, shown, take, write_text

VARIABLE = "GPUDEBUG_LOCK_DIR"
FOLDER = Path("/tmp/gpudebug-locks")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_WHAT = "the folder of the devices' locks"
_MEND = f"mend it, or name another folder, one for everybody, in {VARIABLE}"
WAIT = "wait for it to end, then run this again"
_FILE = re.compile(r"[A-Za-z0-9_-]+\.(?:lock|[0-9]+\.holder)")
_ODD = re.compile(r"[^A-Za-z0-9-]")


@contextlib.contextmanager
def device_locks(
    uuids: Sequence[str],
    holder: Mapping[str, object],
    names: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[int, ...]]:
    """Hold the devices for oneself; yields descriptors for the warden: the locks last until it has ended too.

    `holder` says who one is, for others to read: `path`, `campaign`, `session`, `since`, `command`.
    `names` are the devices' by UUID. Taken in order, so that two who want several never wait for each other.
    Raises BusyError at once where a device is in use, after ENDING_S where a dead holder's run does not end;
    StoreError if the folder of the locks is not safe or cannot be made. `warn` is given a line if whoever
    owns the host's folder could take its locks away: then a folder of one's own is locked in too.
    """
    with contextlib.ExitStack() as held:
        wanted = sorted(set(uuids))
        folders = lock_folders(held, warn) if wanted else []
        yield tuple(
            _take_device(folder, uuid, holder, (names or {}).get(uuid), held)
            for uuid in wanted
            for folder in folders
        )


def _take_device(
    folder: LockFolder, uuid: str, holder: Mapping[str, object], name: str | None, held: contextlib.ExitStack
) -> int:
    stem = file_stem(uuid)
    other: dict[str, Any] | None = None

    def living() -> bool:
        nonlocal other
        other = folder.record_of(stem)
        return other is not None

    fd = folder.lock(
        f"{stem}.lock", lambda fd, path: take(fd, path, living, lambda _: _busy(uuid, name, other))
    )
    held.callback(os.close, fd)
    folder.tell(stem, holder, held)
    return fd


class LockFolder:
    """The folder of the locks, open as `fd`: whatever becomes of its name, this one was looked at."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd

    def lock(self, name: str, how: Callable[[int, Path], None]) -> int:
        """Lock the file of this name as `how` does: its descriptor. /tmp is cleaned up now and then: what has
        lost its name locks nothing."""
        while True:
            fd = self._open_shared(name)
            with contextlib.ExitStack() as undo:
                undo.callback(os.close, fd)
                how(fd, self.path / name)
                if removal.identity_at(self.fd, name) == removal.identity_of(os.fstat(fd)):
                    undo.pop_all()
                    return fd

    def _open_shared(self, name: str) -> int:
        """Return an empty file that every user may lock, mode 0666."""
        # First without O_CREAT, which Linux forbids here for other users' files (fs.protected_regular).
        while True:
            try:
                fd = self._open_existing(name)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    return self._create(name, 0o666)
            else:
                self._mend(fd)
                return fd

    def _mend(self, fd: int) -> None:
        """Open to all users what a kill kept closed; only what holds nothing and has no other name."""
        status = os.fstat(fd)
        ours = status.st_uid == os.geteuid() and status.st_nlink == 1 and status.st_size == 0
        if ours and stat.S_IMODE(status.st_mode) != 0o666:
            with contextlib.suppress(OSError):
                os.fchmod(fd, 0o666)

    def _open_existing(self, name: str) -> int:
        try:
            try:
                return opener.descriptor(name, os.O_RDWR, at=self.fd)
            except OSError as e:
                if e.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                # A lock needs no right to write, but on NFS.
                return opener.descriptor(name, at=self.fd)
        except FileNotFoundError:
            raise
        except OSError as e:
            raise _error(e, self.path / name, "cannot open the lock of a device") from None

    def _create(self, name: str, mode: int) -> int:
        try:
            fd = opener.descriptor(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode, at=self.fd)
        except FileExistsError:
            raise
        except OSError as e:
            raise _error(e, self.path / name, "cannot open the lock of a device") from None
        # Past the umask. A file system that knows no modes has none to set.
        with contextlib.suppress(OSError):
            os.fchmod(fd, mode)
        return fd

    def tell(self, stem: str, holder: Mapping[str, object], held: contextlib.ExitStack) -> None:
        """Say who holds the device, and hold a lock of one's own for as long as that is true.

        If that fails, others read that the holder is unknown: it is the other lock that counts.
        """
        name = f"{stem}.{os.geteuid()}.holder"
        with contextlib.suppress(OSError, StoreError, BusyError):
            fd = self._open_own(name)
            held.callback(os.close, fd)
            status = os.fstat(fd)
            if status.st_uid == os.geteuid() and status.st_nlink == 1:
                write_text(fd, holder)
                os.fchmod(fd, 0o644)
                take(fd, self.path / name, lambda: False, lambda _: BusyError("locked by others"))

    def _open_own(self, name: str) -> int:
        try:
            return self._create(name, 0o644)
        except FileExistsError:
            return self._open_existing(name)

    def record_of(self, stem: str) -> dict[str, object] | None:
        """Return a living holder's own record, and `user`, its number; None if there is none."""
        for name in sorted(os.listdir(self.fd)):
            user = name.removeprefix(f"{stem}.").removesuffix(".holder")
            if name == f"{stem}.{user}.holder" and user.isdecimal():
                record = self._said_by(int(user), name)
                if record is not None:
                    return record
        return None

    def _said_by(self, user: int, name: str) -> dict[str, object] | None:
        try:
            fd = opener.descriptor(name, at=self.fd)
        except OSError:
            return None  # gone, a link, or closed to us: nothing that names anybody
        try:
            if os.fstat(fd).st_uid != user:
                return None
            flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, self.path / name)
        except BlockingIOError:
            return {**read_text(fd), "user": user}
        finally:
            os.close(fd)
        return None


def drop_free() -> Iterator[tuple[Path, Callable[[], str | None]]]:
    """Yield each folder with locks of this user, and what removes those of them that are not held; it returns
    what is held, or None. The folder goes too if it is empty then and this user's."""
    named = os.environ.get(VARIABLE)
    for path in [Path(named)] if named else [FOLDER, Path(f"{FOLDER}-{os.geteuid()}")]:
        if any(_locks_of_user(path)):
            yield path, functools.partial(_drop_free, path)


def _locks_of_user(path: Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(path):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and _FILE.fullmatch(entry.name):
                yield entry


def _drop_free(path: Path) -> str | None:
    held = []
    with _lock_folder(path, private=path != FOLDER) as folder:
        for entry in list(_locks_of_user(path)):
            fd = opener.descriptor(entry.name, at=folder.fd)
            try:
                # Who waits for it sees that its file has lost its name, and makes another.
                flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path / entry.name)
                removal.remove_file(folder.fd, entry.name, removal.identity_of(os.fstat(fd)))
            except BlockingIOError:
                held.append(entry.name.partition(".")[0])
            finally:
                os.close(fd)
    with removal.folder(path.parent) as parent:
        removal.remove_empty(parent, path.name)
    return f"{held[0]} is in use" if held else None


def lock_folders(held: contextlib.ExitStack, warn: Callable[[str], None]) -> list[LockFolder]:
    """The folders of this host's locks, open: the one that all users share, and one's own if that is unsafe.

    What another user owns is locked in all the same, since that user's runs are; but its owner could unlink
    what we hold there, so that a second run of ours would not see the first.
    """
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else FOLDER
    if not path.is_absolute():
        raise StoreError(
            f"{VARIABLE} is not an absolute path",
            file=str(path),
            next="name a folder that is one for everybody",
        )
    if named:
        return [held.enter_context(_lock_folder(path))]
    own = Path(f"{path}-{os.geteuid()}")
    try:
        shared = held.enter_context(_lock_folder(path))
    except StoreError as e:
        warn(f"{e}. Until then devices are locked in {own}, which other users do not look at")
        return [held.enter_context(_lock_folder(own, private=True))]
    owner = os.fstat(shared.fd).st_uid
    if owner in (0, os.geteuid()):
        return [shared]
    warn(
        f"{path} belongs to user {_user_name(owner)}, who could take locks of devices away; "
        f"devices are locked in {own} too. Mend it as root: chown root {path}"
    )
    return [shared, held.enter_context(_lock_folder(own, private=True))]


@contextlib.contextmanager
def _lock_folder(path: Path, *, private: bool = False) -> Iterator[LockFolder]:
    """Open a folder of locks, made if it is missing. StoreError if it is not safe.

    A `private` one is of this user alone.
    """
    made = _make(path)
    fd = _open_folder(path)
    try:
        if not private:
            _open_to_all(path, fd, made)
        elif os.fstat(fd).st_uid != os.geteuid():
            raise StoreError(f"{_WHAT} belongs to another user", file=str(path), next=_MEND)
        _refuse_unsafe(path, os.fstat(fd))
        yield LockFolder(path, fd)
    finally:
        os.close(fd)


def _open_to_all(path: Path, fd: int, made: bool) -> None:
    """Every user may make locks in a folder of ours: one just made, or of which a kill kept it."""
    status = os.fstat(fd)
    left_closed = path == FOLDER and not status.st_mode & _OTHERS_WRITE
    if status.st_uid == os.geteuid() and (made or left_closed):
        try:
            os.fchmod(fd, 0o1777)
        except OSError as e:
            raise _error(e, path, f"cannot open to all users {_WHAT}") from None


def _make(path: Path) -> bool:
    try:
        path.mkdir(0o755)
    except FileExistsError:
        return False
    except OSError as e:
        raise _error(e, path, f"cannot make {_WHAT}") from None
    return True


def _open_folder(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as e:
        what = "a link" if path.is_symlink() else "no folder" if not path.is_dir() else None
        if what is None:
            raise _error(e, path, f"cannot open {_WHAT}") from None
        raise StoreError(f"{_WHAT} is {what}", file=str(path), next=_MEND) from None


def _error(e: OSError, path: Path, what: str) -> StoreError:
    error = os_error(e, path, what)
    error.next = _MEND
    return error


def _refuse_unsafe(path: Path, status: os.stat_result) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
        raise StoreError(
            f"{_WHAT} has mode {mode:04o}: others could take its locks away",
            file=str(path),
            next=f"its owner runs chmod +t on it; or name another folder, one for everybody, in {VARIABLE}",
        )


def file_stem(uuid: str) -> str:
    """A file's name for a device: readable, and different for UUIDs that differ only in odd characters."""
    plain = _ODD.sub("_", uuid)[:100]
    if plain and plain == uuid:
        return plain
    return f"{plain}-{zlib.crc32(uuid.encode('utf-8', 'surrogatepass')):08x}"


def _busy(uuid: str, name: str | None, other: Mapping[str, Any] | None) -> BusyError:
    device = f"device {uuid} ({name})" if name else f"device {uuid}"
    return BusyError(f"{device} is in use by {who(other)}", next=WAIT)


def who(other: Mapping[str, Any] | None) -> str:
    """Return a holder by its record: command, user, place, campaign, session and time."""
    if other is None:
        return "an unknown process"
    command = f"`{shown(other['command'])}`" if other.get("command") else "another gpudebug"
    parts = [
        words.format(shown(other[key]))
        for key, words in (("campaign", "campaign {}"), ("session", "session {}"), ("since", "since {}"))
        if other.get(key)
    ]
    where = f" in {shown(other['path'])}" if other.get("path") else ""
    of = "" if other["user"] == os.geteuid() else f" of user {_user_name(other['user'])}"
    return ", ".join([f"{command}{of}{where}", *parts])


def _user_name(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
