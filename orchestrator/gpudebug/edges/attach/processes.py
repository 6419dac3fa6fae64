"""Processes that gpudebug did not start, as /proc shows them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from gpudebug.edges.proc import (
    children,
    everything,
    lists_children,
    read_file,
    read_process,
    walked_children,
    words,
)

_PYTHON = re.compile(r"(python|pypy)[\d.]*t?$")
_DEEPEST = 64
# A program that is being started has its name a moment before its words.
_BEGINS_S = 0.01
# The PID namespace that the kernel starts in (PROC_PID_INIT_INO, include/linux/proc_ns.h).
_FIRST_NAMESPACE = "pid:[4026531836]"
_PTRACE = 19
"""The number of CAP_SYS_PTRACE (include/uapi/linux/capability.h)."""
_MAPPED = b"/libpython"
_WORKER_NAME = "pt_data_worker"


class ForeignProcess(NamedTuple):
    """A process: `start` in the kernel's ticks makes the number unique; `uid` is its effective user, `argv`
    its words, empty for a zombie or a thread of the kernel. Times in seconds."""

    pid: int
    start: int
    parent: int
    uid: int
    state: str
    name: str
    argv: tuple[str, ...]
    cpu_s: float
    threads: int

    @property
    def alive(self) -> bool:
        return self.state not in ("Z", "X")

    @property
    def shown(self) -> str:
        """Its command as people know it, cut to a line's part."""
        # Loaded late: what looks at a job is not to cost its start.
        from gpudebug.core.redaction.redact import Redactor

        words = [word for word in Redactor().redact_argv(self.argv) if word]
        text = " ".join([words[0].rpartition("/")[2], *words[1:]]) if words else f"[{self.name}]"
        text = "".join(character if character.isprintable() else " " for character in text)
        return text if len(text) <= 60 else text[:59] + "…"

    @property
    def loads(self) -> bool:
        """Whether PyTorch named it as a loader worker."""
        return self.name.startswith(_WORKER_NAME)


def read(pid: int) -> ForeignProcess | None:
    """Return the process as it is now; None if there is none of this number."""
    found = read_process(pid)
    argv, owner = words(pid, "cmdline"), _owner(pid)
    if found is None or argv is None or owner is None:
        return None
    if not argv and found.mapped:
        time.sleep(_BEGINS_S)
        argv = words(pid, "cmdline") or []
    return ForeignProcess(
        pid=pid,
        start=found.start,
        parent=found.parent,
        uid=owner,
        state=found.state,
        name=found.name,
        argv=tuple(argv),
        cpu_s=found.cpu_s,
        threads=found.threads,
    )


def _owner(pid: int) -> int | None:
    """Return the effective user: the folder in /proc belongs to root if the process is protected."""
    for line in _lines(pid, "status"):
        if line.startswith(b"Uid:"):
            return int(line.split()[2])
    return None


def leader_of(tid: int) -> int | None:
    """Return the process that a thread belongs to; None if there is no thread of this number."""
    line = next((line for line in _lines(tid, "status") if line.startswith(b"Tgid:")), b"")
    return int(line.split()[1]) if line else None


def is_python(process: ForeignProcess) -> bool | None:
    """Tell whether a Python interpreter runs in it; None if that cannot be seen."""
    known = [process.argv[0]] if process.argv else []
    unseen = False
    try:
        known.append(os.readlink(f"/proc/{process.pid}/exe"))
    except OSError:
        unseen = True
    if any(_PYTHON.search(word.rpartition("/")[2].removesuffix(" (deleted)")) for word in known):
        return True
    try:
        with open(f"/proc/{process.pid}/maps", "rb") as file:
            return any(_MAPPED in line for line in file)
    except OSError:
        return None if unseen else False


def family(root: int) -> dict[int, ForeignProcess]:
    """Return the process and all below it that live, parents before their children."""
    below = children if lists_children() else walked_children()
    found: dict[int, ForeignProcess] = {}
    pending = [root]
    while pending:
        pid = pending.pop(0)
        process = read(pid) if pid not in found else None
        if process is not None and process.alive:
            found[pid] = process
            pending += below(pid)
    return found


def ancestors(pid: int) -> list[int]:
    """Return the numbers of the processes above one, the nearest first."""
    found: list[int] = []
    while len(found) < _DEEPEST:
        process = read(pid)
        if process is None or process.parent <= 0:
            break
        pid = process.parent
        found.append(pid)
    return found


def variables(pid: int, names: Iterable[str]) -> dict[str, str] | None:
    """Its variables of these names, as it was started with; None if they cannot be read."""
    wanted = frozenset(names)
    found = environment(pid)
    return None if found is None else {name: found[name] for name in wanted & found.keys()}


def environment(pid: int) -> dict[str, str] | None:
    """Return all variables that it was started with; None if they cannot be read."""
    entries = words(pid, "environ")
    if entries is None:
        return None
    found = (word.partition("=") for word in entries)
    return {name: value for name, equals, value in found if equals}


def folder(pid: int) -> str | None:
    """Its working folder; None if it cannot be seen, or lies in another mount namespace than ours."""
    try:
        if os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"):
            return None
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def numbered_inside(pid: int) -> list[int]:
    """Return the processes that have this number in a PID namespace below ours, as a container's have."""
    found = []
    for other in everything():
        line = next((line for line in _lines(other, "status") if line.startswith(b"NSpid:")), b"")
        if line.split()[2:] and int(line.split()[-1]) == pid:
            found.append(other)
    return found


def inner_number(pid: int) -> int:
    """Its number in its own PID namespace."""
    line = next((line for line in _lines(pid, "status") if line.startswith(b"NSpid:")), b"")
    return int(line.split()[-1]) if line else pid


def holding(path: str) -> list[int]:
    """Return the processes that have a file open, as far as this one may see."""
    found = []
    for pid in everything():
        with suppress(OSError):
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd")):
                found.append(pid)
    return found


def output_of(pid: int) -> str | None:
    """Return the path in /proc by which its standard output, or else its standard error, is read: a regular
    file that it writes. None if there is none, or it may not be seen."""
    from stat import S_ISREG

    for number in (1, 2):
        path = f"/proc/{pid}/fd/{number}"
        with suppress(OSError):
            if S_ISREG(os.stat(path).st_mode):
                return path
    return None


def yama() -> int | None:
    """kernel.yama.ptrace_scope; None without Yama."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def capable() -> bool:
    """Tell whether this process has CAP_SYS_PTRACE."""
    line = next((line for line in _lines(os.getpid(), "status") if line.startswith(b"CapEff:")), b"CapEff: 0")
    return bool(int(line.split()[1], 16) >> _PTRACE & 1)


def filtered() -> bool:
    """Tell whether a seccomp filter is in force for this process."""
    return any(line.split() == [b"Seccomp:", b"2"] for line in _lines(os.getpid(), "status"))


def contained() -> bool:
    """Tell whether this process is in a PID namespace of its own, as in a container."""
    try:
        return os.readlink("/proc/self/ns/pid") != _FIRST_NAMESPACE
    except OSError:
        return False


def _lines(pid: int, name: str) -> list[bytes]:
    try:
        return read_file(pid, name).splitlines()
    except OSError:
        return []
