"""Locks that end with their holders, and fail closed where a file system has none.

What runs is held by two locks. The first is inherited by the warden and lasts until nothing of the run is
left; the second only gpudebug itself holds, for as long as what it wrote of itself is true. Both held: busy.
The first alone: a gpudebug that is gone, and a warden that is still ending what it left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import opener
from gpudebug.edges.opener import os_error, saying
from gpudebug.edges.store.files import make_folder, opened_folder, remove_file
from gpudebug.edges.store.foreign import (
    FRESH_S,
    PLACE,
    Lives,
    LockBeat,
    held_elsewhere,
    lock_place,
    unknown_job,
)

# How long a dead holder's warden may still hold its lock while it ends what was left.
ENDING_S = 10.0
_PAUSE_S = 0.02
_LONGEST = 200
_LARGEST = 1 << 16


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive flock on a lock file for the milliseconds of one update."""
    fd = open_lock(path)
    try:
        flock(fd, fcntl.LOCK_EX, path)
        yield
    finally:
        os.close(fd)


def open_lock(path: Path) -> int:
    make_folder(path.parent)
    with saying(path, "cannot open the lock"), opened_folder(path.parent) as folder:
        return opener.descriptor(path.name, os.O_RDWR | os.O_CREAT, 0o644, at=folder)


def flock(fd: int, how: int, path: Path) -> None:
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        raise
    except OSError as e:
        reason = os.strerror(e.errno or 0)
        raise StoreError(
            f"this file system cannot lock files ({reason}), so two sessions could overwrite each other",
            file=str(path),
            next="keep this file's folder on a file system with flock",
        ) from None


def take(
    fd: int, path: Path, held_by_the_living: Callable[[], bool], busy: Callable[[bool], BusyError]
) -> None:
    """Take the flock of `fd`, exclusive.

    Raises what `busy(True)` gives at once where a living gpudebug holds it, and what `busy(False)` gives
    where what a dead one left does not end within ENDING_S. A reader holds it for microseconds.
    """
    deadline = time.monotonic() + ENDING_S
    while True:
        try:
            return flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path)
        except BlockingIOError:
            living = held_by_the_living()
            if living or time.monotonic() > deadline:
                raise busy(living) from None
        time.sleep(_PAUSE_S)


def write_text(fd: int, holder: Mapping[str, object]) -> None:
    """Make `holder`, as JSON, all that the file holds."""
    os.ftruncate(fd, 0)
    rest, at = json.dumps(holder).encode(), 0
    while rest:
        written = os.pwrite(fd, rest, at)
        rest, at = rest[written:], at + written


def read_text(fd: int) -> dict[str, object]:
    """Return what a holder wrote of itself; empty if that is not known."""
    try:
        record = json.loads(os.pread(fd, _LARGEST, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def shown(value: object) -> str:
    """One value of a holder's record, short enough for a line."""
    text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class RunClaim:
    """The exclusive right to run something in this campaign, held by locks that die with their holders.

    `fd` may be handed to the warden: the claim lasts until the last holder has closed it. `holder` says who
    runs what: `pid`, `session` (None or left out for a person), `command` and `since`, all for people only,
    and `allocation`, of a cluster, if it runs in one; host and boot are added. BusyError also if a holder on
    another host lives, whose flock this one may not see: `lives` is asked of its job.
    """

    def __init__(self, path: Path, holder: Mapping[str, object], lives: Lives = unknown_job) -> None:
        self._path = path
        with contextlib.ExitStack() as undo:
            self.fd = open_lock(path)
            undo.callback(os.close, self.fd)
            take(self.fd, path, lambda: claimed(_own(path)), lambda living: _busy(read_text(self.fd), living))
            with saying(path, "cannot write"):
                if os.fstat(self.fd).st_size > _LARGEST:
                    raise StoreError("is not a lock of gpudebug's", file=str(path), next="move it away")
                left = read_text(self.fd)
                if _elsewhere(self.fd, left, holder.get("allocation"), lives):
                    raise _busy_elsewhere(left)
                write_text(self.fd, {**holder, **lock_place().record})
            # Last: while it is held, the text is there and true.
            self._own = open_lock(_own(path))
            undo.callback(os.close, self._own)
            take(self._own, _own(path), lambda: False, lambda living: _busy({}, living))
            self._beat = LockBeat(self.fd)
            undo.pop_all()

    def __enter__(self) -> RunClaim:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._beat.stop()
        os.close(self._own)
        try:
            os.ftruncate(self.fd, 0)
        except OSError as e:
            # What it holds is one who is gone: nothing is locked by it, and the next holder replaces it.
            if kind is None:
                raise os_error(e, self._path, "cannot empty the lock; what ran has ended") from None
        finally:
            os.close(self.fd)


def _own(path: Path) -> Path:
    """Return the lock that only the gpudebug which holds the claim at `path` has."""
    return path.with_name(f"{path.name}.holder")


def _elsewhere(fd: int, record: Mapping[str, object], allocation: object, lives: Lives) -> bool:
    return held_elsewhere(record, os.fstat(fd).st_mtime, lock_place(), allocation, lives)


def _busy_elsewhere(holder: Mapping[str, Any]) -> BusyError:
    who = f"another gpudebug runs on {shown(holder[PLACE]['host'])}"
    return BusyError(
        ": ".join(filter(None, (who, _named(holder)))),
        next=f"wait for it to end, then run this again; {FRESH_S:.0f} s after a kill it counts as gone",
    )


def _busy(holder: Mapping[str, object], living: bool) -> BusyError:
    who = _named(holder)
    what = (
        "another gpudebug runs here" if living else "what a gpudebug that is gone left here is still ending"
    )
    return BusyError(f"{what}: {who}" if who else what, next="wait for it to end, then run this again")


def _named(holder: Mapping[str, object]) -> str:
    """Return a holder by what it says of itself; empty if that is nothing."""
    return ", ".join(
        words.format(shown(holder[key]))
        for key, words in (
            ("pid", "pid {}"),
            ("session", "session {}"),
            ("command", "`{}`"),
            ("since", "since {}"),
        )
        if holder.get(key) is not None
    )


def held_by(path: Path, lives: Lives = unknown_job) -> dict[str, object] | None:
    """Return the record of the claim's holder; None if it has none. Reads only.

    Empty if a gpudebug that is gone left something that is still ending, or one is just taking the claim. A
    holder on another host, whose flock this one may not see, is believed for as long as it renews the lock,
    unless `lives` says that its job is over.
    """
    here = claimed(path)
    if here and not claimed(_own(path)):
        return {}
    try:
        fd = opener.descriptor(path)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise os_error(e, path, "cannot read") from None
    try:
        record = read_text(fd)
        if not here and not _elsewhere(fd, record, None, lives):
            return None
        return {key: value for key, value in record.items() if key != PLACE}
    finally:
        os.close(fd)


def claimed(path: Path) -> bool:
    """Tell whether this lock is held at this moment. Reads only."""
    try:
        fd = opener.descriptor(path)
    except FileNotFoundError:
        return False
    except OSError as e:
        raise os_error(e, path, "cannot read") from None
    try:
        flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, path)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def check_locks(folder: Path) -> None:
    """StoreError if `folder` cannot be written to or its file system cannot lock."""
    path = folder / f".gpudebug-check-{os.getpid()}"
    try:
        with locked(path):
            pass
    finally:
        remove_file(path)
