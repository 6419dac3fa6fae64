"""Freeze and kill: ends a set of processes that may fork while it is being ended."""

from __future__ import annotations

import signal
import time

from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .cgroup import Cgroup
    from .processes import Proc

FREEZE_ROUNDS = 10
PAUSE_S = 0.02


def strike(find: Callable[[], list[Proc]]) -> list[Proc]:
    """One round: stops what `find` returns until it returns nothing new, then kills all of it.

    Stopped parents cannot fork while the rest is looked for. Returns those that were alive.
    """
    seen: dict[tuple[int, int], Proc] = {}
    for _ in range(FREEZE_ROUNDS):
        fresh = [proc for proc in find() if proc.key not in seen]
        for proc in fresh:
            processes.send(proc, signal.SIGSTOP)
            seen[proc.key] = proc
        if not any(proc.alive for proc in fresh):
            break
    for proc in seen.values():
        processes.send(proc, signal.SIGKILL)
    return [proc for proc in seen.values() if proc.alive]


def end_all(
    find: Callable[[], list[Proc]], limit: float, between: Callable[[], object] = lambda: None
) -> tuple[list[Proc], list[Proc]]:
    """Rounds of `strike` until `find` returns nothing alive, for at most `limit` seconds.

    `between` runs after each round, to reap. Returns (killed, still alive).
    """
    killed: dict[tuple[int, int], Proc] = {}
    deadline = time.monotonic() + limit
    while True:
        killed.update((proc.key, proc) for proc in strike(find))
        between()
        left = [proc for proc in find() if proc.alive]
        if not left or time.monotonic() >= deadline:
            return list(killed.values()), left
        time.sleep(PAUSE_S)


class Tree:
    """Everything below this process but for the spared pids, and everything in the job's group."""

    def __init__(self, root: int, cgroup: Cgroup | None = None) -> None:
        self.root = root
        self.cgroup = cgroup

    def members(self, spare: Collection[int] = ()) -> list[Proc]:
        found = processes.descendants(self.root, spare)
        if self.cgroup is not None:
            known = {proc.pid for proc in found}
            others = (processes.read_proc(pid) for pid in self.cgroup.pids() if pid not in known)
            found += [proc for proc in others if proc is not None]
        return found

    def strike(self, spare: Collection[int] = ()) -> list[Proc]:
        """One round of freeze and kill; returns those that were alive before it."""
        caught: list[Proc] = []
        # Orphans are our own children: the newest is stopped at once, for it may be about to fork and exit.
        for proc in processes.newest_first():
            if proc.ppid == self.root and proc.alive and proc.pid not in spare:
                processes.send(proc, signal.SIGSTOP)
                caught.append(proc)
        found = {proc.key: proc for proc in caught}
        if self.cgroup is not None:
            found.update((proc.key, proc) for proc in self.members(spare) if proc.alive)
            self.cgroup.kill()
        found.update((proc.key, proc) for proc in strike(lambda: self.members(spare)))
        return list(found.values())
