"""Reading the process table of Linux and signalling exactly the process that was read."""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from .cgroup import Cgroup


PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37

_libc = ctypes.CDLL(None, use_errno=True)
FREEZE_ROUNDS = 10
PAUSE_S = 0.02


def prctl(option: int, argument: object) -> None:
    """prctl(2); raises OSError if the kernel refuses."""
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def is_subreaper() -> bool:
    """Tell whether orphaned descendants are handed to this process."""
    value = ctypes.c_int(0)
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(value))
    return bool(value.value)


def set_subreaper(on: bool) -> None:
    prctl(PR_SET_CHILD_SUBREAPER, int(on))


class Proc:
    """One line of the process table. `start` (clock ticks since boot) shows if a number was recycled.

    `cpu` is what it ran so far, in clock ticks.
    """

    __slots__ = ("cpu", "group", "name", "pid", "ppid", "session", "start", "state", "threads")

    def __init__(
        self,
        pid: int,
        ppid: int,
        *,
        session: int,
        start: int,
        state: str,
        threads: int,
        group: int = 0,
        name: str = "",
        cpu: int = 0,
    ) -> None:
        self.pid = pid
        self.ppid = ppid
        self.group = group
        self.name = name
        self.cpu = cpu
        self.session = session
        self.start = start
        self.state = state
        self.threads = threads

    @property
    def key(self) -> tuple[int, int]:
        return (self.pid, self.start)

    @property
    def alive(self) -> bool:
        """A process whose first thread has ended reads as a zombie while its other threads run on."""
        return self.state not in "ZX" or self.threads > 1


def read_proc(pid: int) -> Proc | None:
    """Return the process with that number, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in brackets and may itself hold brackets and spaces.
    fields = data[data.rindex(b")") + 2 :].split()
    return Proc(
        pid,
        int(fields[1]),
        session=int(fields[3]),
        group=int(fields[2]),
        cpu=int(fields[11]) + int(fields[12]),
        name=data[data.index(b"(") + 1 : data.rindex(b")")].decode("utf-8", "replace"),
        start=int(fields[19]),
        state=fields[0].decode(),
        threads=int(fields[17]),
    )


def newest_first() -> Iterator[Proc]:
    """Yield every process, the highest number first.

    One that forks and exits without end is at the top of the list: it is read within microseconds of
    the listing, and can be stopped before its next fork.
    """
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdecimal()), reverse=True):
        proc = read_proc(pid)
        if proc is not None:
            yield proc


def descendants(root: int, spare: Collection[int] = ()) -> list[Proc]:
    """Everything below `root`, zombies too, except the trees under the pids in `spare`."""
    return _below([root], spare)


def with_descendants(procs: Collection[Proc]) -> list[Proc]:
    """Return those processes and everything below them, each once."""
    found = {proc.key: proc for proc in procs}
    if found:
        found.update((proc.key, proc) for proc in _below([proc.pid for proc in procs], ()))
    return list(found.values())


def _below(roots: list[int], spare: Collection[int]) -> list[Proc]:
    children: dict[int, list[Proc]] = {}
    for proc in newest_first():
        children.setdefault(proc.ppid, []).append(proc)
    found: list[Proc] = []
    while roots:
        for proc in children.pop(roots.pop(), []):
            if proc.pid not in spare:
                found.append(proc)
                roots.append(proc.pid)
    return found


def send(proc: Proc, number: int) -> bool:
    """Signals that process, and never another one that has taken over its number.

    Returns whether the signal was delivered: False if the process is gone or belongs to another user.
    """
    handle = None
    try:
        if hasattr(os, "pidfd_open"):
            # An old kernel or a container's filter may refuse; the start time is compared all the same.
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(proc.pid)
        now = read_proc(proc.pid)
        if now is None or now.start != proc.start:
            return False
        if handle is None:
            os.kill(proc.pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def strike(find: Callable[[], list[Proc]]) -> list[Proc]:
    """One round: stops what `find` returns until it returns nothing new, then kills all of it.

    Stopped parents cannot fork while the rest is looked for. Returns those that were alive.
    """
    seen: dict[tuple[int, int], Proc] = {}
    for _ in range(FREEZE_ROUNDS):
        fresh = [proc for proc in find() if proc.key not in seen]
        for proc in fresh:
            send(proc, signal.SIGSTOP)
            seen[proc.key] = proc
        if not any(proc.alive for proc in fresh):
            break
    for proc in seen.values():
        send(proc, signal.SIGKILL)
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
        found = descendants(self.root, spare)
        if self.cgroup is not None:
            known = {proc.pid for proc in found}
            others = (read_proc(pid) for pid in self.cgroup.pids() if pid not in known)
            found += [proc for proc in others if proc is not None]
        return found

    def strike(self, spare: Collection[int] = ()) -> list[Proc]:
        """One round of freeze and kill; returns those that were alive before it."""
        caught: list[Proc] = []
        # Orphans are our own children: the newest is stopped at once, for it may be about to fork and exit.
        for proc in newest_first():
            if proc.ppid == self.root and proc.alive and proc.pid not in spare:
                send(proc, signal.SIGSTOP)
                caught.append(proc)
        found = {proc.key: proc for proc in caught}
        if self.cgroup is not None:
            found.update((proc.key, proc) for proc in self.members(spare) if proc.alive)
            self.cgroup.kill()
        found.update((proc.key, proc) for proc in strike(lambda: self.members(spare)))
        return list(found.values())
