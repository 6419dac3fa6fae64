"""The interrupt of a job: to its group, as a terminal's Ctrl-C, but in order, and to each process once.

A filter that the training's output goes through (`| grep`), and a parent that captures it, would end at once
with what they hold: they are told when those they read from are gone. So is a parent that would die of it
while its child saves. What passes the signal on to its child by itself is never told.
"""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import os
import signal

from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .processes import Proc

FORWARDERS = frozenset({"uv", "timeout", "tini", "dumb-init", "catatonit"})
"""Commands that send what they get to their child (uv run without a terminal; timeout(1) of coreutils)."""
ENDING_S = 0.5
"""How long a filter may take to write what it holds once its writers are gone."""
_MOST_DESCRIPTORS = 1024
_STARTS = os.sysconf("SC_CLK_TCK")
"""A parent may have needed so much CPU time for its own start, in ticks: a second."""


class Interrupt:
    """One interrupt. `begin` tells those that come first, `go_on` the others in time."""

    def __init__(self) -> None:
        self._first: list[Proc] = []
        self._later: list[Proc] = []
        self._by = 0.0
        self._gone_at: float | None = None

    def begin(self, leader: int, members: Sequence[Proc], by: float) -> bool:
        """Interrupt the group of the leader, the rest of it at the latest at `by`; False if there is none."""
        alive = [proc for proc in members if proc.alive]
        # timeout(1) makes a group of its own.
        groups = {leader, *(proc.pid for proc in alive if proc.name == "timeout")}
        group = [proc for proc in alive if proc.group in groups]
        if not group:
            return False
        parents = {proc.ppid for proc in group}
        told = [proc for proc in group if not (proc.name in FORWARDERS and proc.pid in parents)] or group
        later = _readers(told) | {proc.pid for proc in told if proc.pid in parents and _dies(proc.pid)}
        self._first = [proc for proc in told if proc.pid not in later] or told
        first = {proc.pid for proc in self._first}
        self._later, self._by, self._gone_at = [p for p in told if p.pid not in first], by, None
        for proc in self._first:
            processes.send(proc, signal.SIGINT)
        return True

    def go_on(self, now: float) -> None:
        """Tell the others once the first ones are gone, or their time is over."""
        if not self._later:
            return
        if self._gone_at is None and not any(_lives(proc) for proc in self._first):
            self._gone_at = now
        if now >= self._by or (self._gone_at is not None and now >= self._gone_at + ENDING_S):
            for proc in self._later:
                processes.send(proc, signal.SIGINT)
            self._later = []


def _lives(proc: Proc) -> bool:
    now = processes.read_proc(proc.pid)
    return now is not None and now.start == proc.start and now.alive


def _readers(group: Iterable[Proc]) -> set[int]:
    """Return those that read what others of them print into a pipe, and worked little more than these: a
    training that reads a helper's output is none of them."""
    pipes: dict[str, dict[int, int]] = {}
    for proc in group:
        for number in (1, 2):
            with contextlib.suppress(OSError):
                link = os.readlink(f"/proc/{proc.pid}/fd/{number}")
                if link.startswith("pipe:"):
                    pipes.setdefault(link, {})[proc.pid] = proc.cpu
    return {proc.pid for proc in group if pipes and _reads(proc, pipes)}


def _reads(proc: Proc, pipes: dict[str, dict[int, int]]) -> bool:
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{proc.pid}/fd")[:_MOST_DESCRIPTORS]:
            with contextlib.suppress(OSError):
                writers = pipes.get(os.readlink(f"/proc/{proc.pid}/fd/{number}"), {})
                ran = [cpu for pid, cpu in writers.items() if pid != proc.pid]
                if ran and proc.cpu <= sum(ran) + _STARTS and _is_read(proc.pid, number):
                    return True
    return False


def _is_read(pid: int, number: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{number}", "rb") as file:
        lines = file.read(4096).splitlines()
    flags = next((line for line in lines if line.startswith(b"flags:")), b"flags:1")
    return int(flags.partition(b":")[2], 8) & os.O_ACCMODE == os.O_RDONLY


def _dies(pid: int) -> bool:
    """Tell whether it neither catches nor ignores the signal."""
    bit = 1 << (signal.SIGINT - 1)
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            masks = [line.split()[1] for line in file if line.startswith((b"SigIgn:", b"SigCgt:"))]
    except OSError:
        return False
    return len(masks) == 2 and not any(int(mask, 16) & bit for mask in masks)
