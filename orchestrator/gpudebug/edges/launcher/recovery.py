"""Ending what a lost warden left behind: its orphans while we live, or the marked processes later."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.cgroup import Cgroup, own_folder
from gpudebug.edges.launcher.warden.processes import Proc, end_all

VARIABLE = "GPUDEBUG_RUN"
LIMIT_S = 5.0
# A process that forks its successor and exits can do both between the list of processes and a look at it.
_QUIET_ROUNDS = 8
# Looks at one moment may all miss a chain of processes that replace each other.
_BETWEEN_S = 0.02


@contextlib.contextmanager
def adopting() -> Iterator[frozenset[int]]:
    """Makes this process the one that receives orphans of a lost warden; yields its children of before."""
    own = frozenset(proc.pid for proc in processes.newest_first() if proc.ppid == os.getpid())
    previous = processes.is_subreaper()
    processes.set_subreaper(True)
    try:
        yield own
    finally:
        processes.set_subreaper(previous)


def end_adopted(before: frozenset[int], limit: float = LIMIT_S) -> list[int]:
    """Ends everything that came to us from a warden that is dead and reaped; returns the pids killed.

    Our own children of before, and what shares our session (a helper that another thread started), are
    not the warden's: it and its job run in sessions of their own.
    """
    session = os.getsid(0)

    def find() -> list[Proc]:
        return [proc for proc in processes.descendants(os.getpid(), before) if proc.session != session]

    def reap() -> None:
        for proc in find():
            # Only those: the status of another's child is not ours to take.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(proc.pid, os.WNOHANG)

    killed, _ = end_all(find, limit, reap)
    reap()  # What died after its round was reaped.
    return [proc.pid for proc in killed]


def sweep(marker: str, limit: float = LIMIT_S) -> list[int]:
    """Kills every process of this user with GPUDEBUG_RUN=`marker`, and all below it; returns the pids.

    For recovery after gpudebug and its warden were both killed. The run's control group, where there was one,
    also gives away a daemon that cleared its environment; without one such a daemon is missed.
    """
    groups = list(Cgroup.find(marker))

    def find() -> list[Proc]:
        inside = [processes.read_proc(pid) for group in groups for pid in group.pids()]
        found = [*marked(marker), *(proc for proc in inside if proc is not None)]
        others = [proc for proc in found if proc.pid != os.getpid()]
        return [proc for proc in processes.with_descendants(others) if proc.pid != os.getpid()]

    def kill_groups() -> None:
        for group in groups:
            group.kill()

    pids: list[int] = []
    quiet = 0
    while quiet < _QUIET_ROUNDS:
        if quiet:
            time.sleep(_BETWEEN_S)
        killed, left = end_all(find, limit, kill_groups)
        pids += [proc.pid for proc in killed]
        if left:
            break
        quiet = 0 if killed else quiet + 1
    for group in groups:
        group.remove()
    return pids


def marked(marker: str) -> list[Proc]:
    """Live processes of this user with that marker in the environment they were started with."""
    entry = os.fsencode(f"{VARIABLE}={marker}")
    return [proc for proc in processes.newest_first() if proc.alive and entry in _environment(proc)]


def _environment(proc: Proc) -> list[bytes]:
    """Return the entries that it was started with; none if they are closed to us or it has just ended."""
    data = _read(proc.pid, "environ")
    if not data and proc.threads > 1:
        # The first thread's end takes its view of the memory away, but not that of the others.
        with contextlib.suppress(FileNotFoundError):
            threads = os.listdir(f"/proc/{proc.pid}/task")
            data = b"".join(_read(proc.pid, f"task/{thread}/environ") for thread in threads)
    return data.split(b"\0")


def _read(pid: int, name: str) -> bytes:
    with (
        contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError),
        open(f"/proc/{pid}/{name}", "rb") as file,
    ):
        return file.read()
    return b""


def containment() -> dict[str, bool]:
    """Means of containment -> whether it works here. Without `subreaper` nothing can be promised."""
    return {
        "subreaper": _subreaper(),
        "pidfd": hasattr(os, "pidfd_open"),
        "cgroup": _writable_cgroup(),
    }


def _subreaper() -> bool:
    try:
        before = processes.is_subreaper()
        processes.set_subreaper(True)
        works = processes.is_subreaper()
        processes.set_subreaper(before)
    except OSError:
        return False
    return works


def _writable_cgroup() -> bool:
    folder = own_folder()
    return folder is not None and os.access(folder, os.W_OK)
