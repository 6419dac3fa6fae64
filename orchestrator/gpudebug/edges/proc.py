"""Processes as /proc shows them: what all readers of it share."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

MB = 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")

# include/linux/sched.h: the process forked and did not call exec since.
PF_FORKNOEXEC = 0x40

_MOST_BYTES = 1 << 20


class ProcessStat(NamedTuple):
    """One process from /proc/PID/stat. Times in s; `reaped_s` is that of children already waited for.

    `start` is in the kernel's ticks: with the number it is this process for ever. `mapped` says whether it
    has memory: threads of the kernel and zombies have none.
    """

    pid: int
    name: str
    state: str
    parent: int
    forked: bool
    cpu_s: float
    reaped_s: float
    start: int
    rss_mb: float
    threads: int = 1
    mapped: bool = True


def read_process(pid: int) -> ProcessStat | None:
    """Return the process as it is now; None if it is gone."""
    try:
        text = read_file(pid, "stat").decode("utf-8", "replace")
    except OSError:
        return None
    # The name may hold spaces and brackets; the last bracket ends it. Fields: proc(5).
    name = text[text.index("(") + 1 : text.rindex(")")]
    field = text[text.rindex(")") + 2 :].split()
    return ProcessStat(
        pid=pid,
        name=name,
        state=field[0],
        parent=int(field[1]),
        forked=bool(int(field[6]) & PF_FORKNOEXEC),
        cpu_s=(int(field[11]) + int(field[12])) / TICKS,
        reaped_s=(int(field[13]) + int(field[14])) / TICKS,
        start=int(field[19]),
        rss_mb=int(field[21]) * PAGE / MB,
        threads=int(field[17]),
        mapped=int(field[20]) > 0,
    )


def children(pid: int) -> list[int]:
    """PIDs of the children of all threads of the process; empty if it is gone.

    The kernel's own list is read rather than all of /proc: on a busy host that walk alone would
    cost more than the sampler may.
    """
    found: list[int] = []
    for thread in tasks(pid):
        with suppress(OSError):
            found += map(int, read_file(pid, f"task/{thread}/children").split())
    return found


def tasks(pid: int) -> list[int]:
    """Return the numbers of its threads; empty if it is gone."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []


def lists_children() -> bool:
    """The kernel keeps the list that `children` reads (CONFIG_PROC_CHILDREN; gVisor has none)."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def walked_children() -> Callable[[int], list[int]]:
    """Return what `children` answers, from one walk through all of /proc."""
    found: dict[int, list[int]] = {}
    for number in everything():
        process = read_process(number)
        if process is not None:
            found.setdefault(process.parent, []).append(process.pid)
    return lambda pid: found.get(pid, [])


def everything() -> list[int]:
    """Return the numbers of all processes that this one sees."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())


def words(pid: int, name: str) -> list[str] | None:
    """Return the words of its `cmdline` or `environ`; None if it is another user's, or it is gone."""
    try:
        text = read_file(pid, name).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return text.rstrip("\0").split("\0") if text else []


def read_file(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read(_MOST_BYTES)
