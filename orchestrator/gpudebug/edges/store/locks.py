"""Locks that end with their holders, and fail closed where a file system has none."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges.store.files import os_error

# How long a dead holder's warden may still hold its claim while it ends what was left.
_DYING_S = 10.0


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive flock on a lock file for the milliseconds of one update."""
    fd = _open_lock(path)
    try:
        _flock(fd, fcntl.LOCK_EX, path)
        yield
    finally:
        os.close(fd)


def _open_lock(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as e:
        raise os_error(e, path, "cannot open the lock") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError("the lock is not a regular file", file=str(path), next="remove it")
    return fd


def _flock(fd: int, how: int, path: Path) -> None:
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        raise
    except OSError as e:
        reason = os.strerror(e.errno or 0)
        raise StoreError(
            f"this file system cannot lock files ({reason}), so two sessions could overwrite each other",
            file=str(path),
            next="keep the repository on a file system with flock",
        ) from None


class Claim:
    """The exclusive right to run something in this campaign, held by an flock that dies with its holders.

    `fd` may be handed to the warden: the claim lasts until the last holder has closed it.
    """

    def __init__(self, path: Path, holder: dict[str, object]) -> None:
        self.fd = _open_lock(path)
        try:
            self._take(path)
            os.ftruncate(self.fd, 0)
            os.write(self.fd, json.dumps(holder).encode())
        except OSError as e:
            os.close(self.fd)
            raise os_error(e, path, "cannot write") from None
        except (BusyError, StoreError):
            os.close(self.fd)
            raise

    def _take(self, path: Path) -> None:
        """Wait for a holder that is dead already, whose warden is still ending what it left; and for
        `claimed`, which looks for microseconds. A live holder names itself in the file."""
        deadline = time.monotonic() + _DYING_S
        while True:
            try:
                return _flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path)
            except BlockingIOError:
                said = os.pread(self.fd, 4096, 0)
                if _alive(said) or time.monotonic() > deadline:
                    raise BusyError(
                        f"another gpudebug runs here{_holder(said)}",
                        next="wait for it to end, then run this again",
                    ) from None
            time.sleep(0.05)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def _alive(text: bytes) -> bool:
    try:
        os.kill(int(json.loads(text)["pid"]), 0)
    except (ValueError, KeyError, TypeError):
        return False
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _holder(text: bytes) -> str:
    try:
        said = json.loads(text)
        return f": pid {said['pid']}, `{said['command']}`, since {said['since']}"
    except (ValueError, KeyError, TypeError):
        return ""


def claimed(path: Path) -> bool:
    """Whether somebody holds the claim at this moment. Reads only."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as e:
        raise os_error(e, path, "cannot read") from None
    try:
        _flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, path)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def check_locks(folder: Path) -> None:
    """StoreError where `folder` cannot be written to or its file system cannot lock."""
    path = folder / f".gpudebug-check-{os.getpid()}"
    try:
        with locked(path):
            pass
    finally:
        path.unlink(missing_ok=True)
