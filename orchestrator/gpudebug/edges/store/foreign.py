"""Holders of a lock on another host, where a file system keeps a flock to the host that has it.

NFS with `local_lock` and Lustre with `localflock` do so without an error, so that no call can tell. A holder
therefore writes its host and boot beside what it says of itself, and renews the time of the file while it
lives.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudebug.edges.host import boot_id, host_name
from gpudebug.edges.store.files import get_json

BEAT_S = 20.0
FRESH_S = 120.0
"""Six beats: an NFS client may know the time of 60 s ago (`acregmax`, nfs(5)), and clocks differ."""
PLACE = "place"
ALLOCATION = "allocation"

Lives = Callable[[str], "bool | None"]
"""Whether a job of the cluster lives; None if that is not known."""


@dataclass(frozen=True)
class LockPlace:
    """Where a lock is held: a host, and the kernel's id of its boot, empty if unknown."""

    host: str
    boot: str

    @property
    def record(self) -> dict[str, object]:
        """What a lock's file says of it."""
        return {PLACE: {"host": self.host, "boot": self.boot}}


def lock_place() -> LockPlace:
    """Return the place of a lock that this process takes."""
    return LockPlace(host_name(), boot_id() or "")


def unknown_job(job: str) -> bool | None:
    """Return where no cluster can be asked."""
    return None


def noted_jobs(private: Path) -> Lives:
    """Return what the campaign's own files say: a job is over if they say so or name another one, or if its
    worker left."""

    def lives(job: str) -> bool | None:
        note = get_json(private / ALLOCATION / "job.json")
        if not isinstance(note, dict) or not isinstance(note.get("job"), str):
            return None
        over = note["job"] != job or note.get("ended") is not None or note.get("left") is not None
        return False if over else None

    return lives


def held_elsewhere(
    record: Mapping[str, object], renewed_s: float, here: LockPlace, allocation: object, lives: Lives
) -> bool:
    """Tell whether the holder that wrote `record` lives on another host; on this one its flock decides.

    It renewed its lock last at `renewed_s`, seconds since 1970. If it names an allocation, the cluster
    knows best whether that job lives; one that was started again, as the caller's `allocation`, left its
    node. If the cluster does not say, a holder that renewed its lock within FRESH_S lives.
    """
    place = record.get(PLACE)
    host, boot = (place.get("host"), place.get("boot")) if isinstance(place, dict) else (None, None)
    if not (isinstance(host, str) and isinstance(boot, str) and boot and here.boot):
        return False
    if boot == here.boot or host == here.host:
        return False
    theirs = record.get("allocation") or record.get("job")
    if isinstance(theirs, str) and theirs:
        job = theirs.partition(".")[0]
        if isinstance(allocation, str) and allocation != theirs and allocation.partition(".")[0] == job:
            return False
        known = lives(job)
        if known is not None:
            return known
    return abs(time.time() - renewed_s) < FRESH_S


class LockBeat:
    """Renews the time of an open file until it is stopped, from a thread that no exit waits for."""

    def __init__(self, fd: int, every: float = BEAT_S) -> None:
        self._fd = fd
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(every,), name="gpudebug-lock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Once this returns, the file is not touched any more and may be closed."""
        self._stopped.set()
        self._thread.join()

    def _run(self, every: float) -> None:
        while not self._stopped.wait(every):
            with contextlib.suppress(OSError):
                os.utime(self._fd)
