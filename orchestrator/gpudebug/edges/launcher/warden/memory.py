"""Whether the kernel killed a process of the job because the job itself had filled its memory limit.

A container's limit is the program's to keep; where others took the memory, the kill says nothing of it.
"""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import os
import resource

ROOT = "/sys/fs/cgroup"
SELF = "/proc/self/cgroup"
KIB, MIB = 1 << 10, 1 << 20
# Of the limit, what one process of the job must have held.
MOST = 0.5
# Version 1 writes a limit that is none as the largest multiple of a page.
UNLIMITED = 1 << 60


def folders() -> list[str]:
    """Return the folders of this process's memory group and of those above it, own first."""
    found: list[str] = []
    for line in _lines(SELF):
        _, names, path = line.split(":", 2)
        if names and "memory" not in names.split(","):
            continue
        mount = f"{ROOT}/memory" if names else ROOT
        parts = [part for part in path.split("/") if part and part != ".."]
        found += ["/".join((mount, *parts[:depth])) for depth in range(len(parts), -1, -1)]
    return found


def limit_mb() -> float | None:
    """Return the least limit of this process's groups; None if there is none."""
    limits = [limit for group in folders() if (limit := _limit(group)) is not None]
    return min(limits) / MIB if limits else None


class OwnLimit:
    """The kills and the full limits of these groups, from now on."""

    def __init__(self, groups: list[str] | None = None) -> None:
        self._groups = folders() if groups is None else groups
        self._before = self._counted()

    def reached_mb(self, peak_bytes: float | None = None) -> float | None:
        """Return the limit at which a process was killed though `peak_bytes`, of the job's largest process
        that was waited for, are most of it; None if none was, or if others may have filled it."""
        if peak_bytes is None:
            peak_bytes = float(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KIB)
        rises = [
            (now[0] - before[0], now[1] - before[1])
            for now, before in zip(self._counted(), self._before, strict=True)
        ]
        if not any(kills > 0 for kills, _ in rises):
            return None
        full = [group for group, (_, times) in zip(self._groups, rises, strict=True) if times > 0]
        limits = [limit for group in full if (limit := _limit(group)) is not None]
        least = min(limits, default=None)
        return least / MIB if least is not None and peak_bytes >= MOST * least else None

    def _counted(self) -> list[tuple[int, int]]:
        """Of each group how often the kernel killed in it, and how often its limit was full."""
        return [_counts(group) for group in self._groups]


def _counts(group: str) -> tuple[int, int]:
    """By version 2, else by version 1."""
    events = _numbers(f"{group}/memory.events")
    if events:
        return events.get("oom_kill", 0), events.get("oom", 0)
    full = _lines(f"{group}/memory.failcnt")
    times = int(full[0]) if full and full[0].isdigit() else 0
    return _numbers(f"{group}/memory.oom_control").get("oom_kill", 0), times


def _limit(group: str) -> int | None:
    """Bytes; None if there is none."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        text = "".join(_lines(f"{group}/{name}"))
        if text.isdigit() and int(text) < UNLIMITED:
            return int(text)
    return None


def _numbers(path: str) -> dict[str, int]:
    words = (line.split() for line in _lines(path))
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}


def _lines(path: str) -> list[str]:
    """Of a file of the kernel's; none if it is not there, or not for us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(fd, 65536).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    finally:
        os.close(fd)
