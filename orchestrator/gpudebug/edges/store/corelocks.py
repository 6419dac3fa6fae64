"""Locks of the cores that a CPU stand-in of a given size has to itself, and notes of runs that share cores.

A core is locked as a GPU is, in the same folder. Which of the allowed cores does not matter, since no process
is bound to one: a run that needs N takes the first N that are free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges.store.hostlocks import WAIT, LockFolder, lock_folders, who
from gpudebug.edges.store.locks import ENDING_S, flock, shown, take

_CPU = "CPU"
_NOTES = 64
_PAUSE_S = 0.05


@contextlib.contextmanager
def core_locks(
    count: int, holder: Mapping[str, object], warn: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[int, ...]]:
    """Hold `count` of the cores that this process may use, all of them if it may use fewer; yields
    descriptors for the warden. With 0 no core is held, and a note records that a run measures here.

    Raises BusyError at once where too few are free, after ENDING_S where a dead holder's run does not end;
    StoreError as `device_locks` does; neither of them for a note, which is left out with a line to `warn`.
    `warn` is given a line for another gpudebug that measures on these cores, too.
    """
    with contextlib.ExitStack() as held:
        try:
            folders = lock_folders(held, warn)
            fds = tuple(fd for folder in folders for fd in _taken(folder, count, holder, held))
        except (StoreError, BusyError) as e:
            if count:
                raise
            warn(f"{e}. Until then other gpudebugs do not see that this one measures on the cores")
            yield ()
            return
        for other in _beside(folders[0], fds, [*_notes(), *_allowed()]):
            warn(f"{who(other)} measures on this CPU too; each run records how busy others kept the cores")
        yield fds


def sharing(mine: Sequence[int], own: int) -> tuple[str, ...]:
    """Who measures on the cores that the holder of the descriptors `mine` has, by campaign, else by command.

    Others' locks and notes with `own` 0, a note; with cores of its own notes alone. () if the folder of the
    locks cannot be used: then nobody is seen.
    """
    with contextlib.ExitStack() as held, contextlib.suppress(StoreError, BusyError):
        folder = lock_folders(held, lambda text: None)[0]
        found = _beside(folder, mine, [*_notes(), *([] if own else _allowed())])
        return tuple(sorted({_named(record) for record in found}))
    return ()


def _named(record: Mapping[str, Any]) -> str:
    campaign = record.get("campaign")
    return f"campaign {shown(campaign)}" if campaign else f"`{shown(record.get('command') or 'gpudebug')}`"


def _allowed() -> list[str]:
    return [_core(core) for core in sorted(os.sched_getaffinity(0))]


def _taken(
    folder: LockFolder, count: int, holder: Mapping[str, object], held: contextlib.ExitStack
) -> list[int]:
    """Lock the first free cores, or the first free note, while no other process chooses."""
    if not count:
        with _choosing(folder):
            return [fd for _, fd in _free(folder, _notes(), 1, holder, held)]
    allowed = sorted(os.sched_getaffinity(0))
    wanted, deadline = min(count, len(allowed)), time.monotonic() + ENDING_S
    while True:
        with _choosing(folder), contextlib.ExitStack() as undo:
            found = _free(folder, [_core(core) for core in allowed], wanted, holder, undo)
            if len(found) == wanted:
                held.push(undo.pop_all())
                return [fd for _, fd in found]
            free = {stem for stem, _ in found}
            others = [folder.record_of(_core(core)) for core in allowed if _core(core) not in free]
        if all(others) or time.monotonic() > deadline:
            raise _too_few(wanted, len(allowed), len(found), others)
        time.sleep(_PAUSE_S)


def _core(number: int) -> str:
    return f"{_CPU}-{number}"


def _notes() -> list[str]:
    return [f"{_CPU}-shared-{place}" for place in range(_NOTES)]


@contextlib.contextmanager
def _choosing(folder: LockFolder) -> Iterator[None]:
    """Exclude other choices for some milliseconds: else two runs that need two cores could take one each."""
    busy = BusyError("the locks of the cores are held by an unknown process", next=WAIT)
    fd = folder.lock(f"{_CPU}.lock", lambda fd, path: take(fd, path, lambda: False, lambda _: busy))
    try:
        yield
    finally:
        os.close(fd)


def _free(
    folder: LockFolder,
    stems: Sequence[str],
    wanted: int,
    holder: Mapping[str, object],
    held: contextlib.ExitStack,
) -> list[tuple[str, int]]:
    """Take at most `wanted` free locks, in order: stem and descriptor of each; `held` gives them back."""
    found: list[tuple[str, int]] = []
    for stem in stems:
        if len(found) == wanted:
            break
        fd = _locked(folder, f"{stem}.lock")
        if fd is None:
            continue
        held.callback(os.close, fd)
        folder.tell(stem, holder, held)
        found.append((stem, fd))
    return found


def _locked(folder: LockFolder, name: str) -> int | None:
    """Take this lock: its descriptor, None if another process has it."""
    try:
        return folder.lock(name, lambda fd, path: flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path))
    except BlockingIOError:
        return None


def _too_few(wanted: int, allowed: int, free: int, others: Sequence[Mapping[str, Any] | None]) -> BusyError:
    named = sorted({who(other) for other in others})
    used = "the core is" if allowed == 1 else f"{allowed - free} of {allowed} cores are"
    cores = f"device cpu:{wanted}: {used}"
    return BusyError(f"{cores} in use by {'; '.join(named)}", next=WAIT)


def _beside(folder: LockFolder, mine: Sequence[int], stems: Sequence[str]) -> list[Mapping[str, Any]]:
    """Holders of other locks and notes among these, each once."""
    own = {os.fstat(fd).st_ino for fd in mine}
    found: dict[str, Mapping[str, Any]] = {}
    for stem in stems:
        with contextlib.suppress(FileNotFoundError):
            if os.stat(f"{stem}.lock", dir_fd=folder.fd, follow_symlinks=False).st_ino in own:
                continue
            record = folder.record_of(stem)
            if record is not None:
                found.setdefault(who(record), record)
    return list(found.values())
