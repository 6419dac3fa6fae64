"""Reading the process table of Linux and signalling exactly the process that was read."""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37

_libc = ctypes.CDLL(None, use_errno=True)


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
    """One line of the process table. `start` (clock ticks since boot) shows if a number was recycled."""

    __slots__ = ("pid", "ppid", "session", "start", "state", "threads")

    def __init__(self, pid: int, ppid: int, *, session: int, start: int, state: str, threads: int) -> None:
        self.pid = pid
        self.ppid = ppid
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
