"""How busy the cores of a run are, with all their users: /proc/stat."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
# Below this the clocks of the kernel's books differ by more than what is looked for.
SHORTEST_S = 0.5


class UsedCores(NamedTuple):
    """Seconds that these cores have worked since the machine started, and all cores of the `machine`.

    `whole` says that these are all that the machine has.
    """

    cores: frozenset[int]
    seconds: float
    machine: float = 0.0
    whole: bool = False


def busy(cores: frozenset[int]) -> UsedCores | None:
    """Return what the kernel has counted for these cores; None if it does not count by core."""
    with open("/proc/stat", encoding="ascii") as file:
        lines = [line.split() for line in file if line.startswith("cpu")]
    counted = {int(words[0][3:]): words[1:] for words in lines if words[0][3:].isdigit()}
    if not cores or not cores <= counted.keys():
        return None
    # user nice system idle iowait irq softirq: proc(5). Stolen time is the hypervisor's to explain.
    worked = {core: sum(int(words[i]) for i in (0, 1, 2, 5, 6)) / TICKS for core, words in counted.items()}
    own = sum(worked[core] for core in cores)
    return UsedCores(cores, own, sum(worked.values()), whole=cores == worked.keys())


def allowed(pids: Iterable[int]) -> frozenset[int]:
    """Return the cores that at least one of the processes may use."""
    found: set[int] = set()
    for pid in pids:
        try:
            found |= os.sched_getaffinity(pid)
        except ProcessLookupError:
            continue
    return frozenset(found)


class OthersLoad:
    """The share of the run's cores that others used since the last reading."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.used: UsedCores | None = None
        """What the cores had worked at the last reading; None if the kernel does not count it."""
        self._last: tuple[float, UsedCores, float] | None = None

    def read(self, now: float, pids: Iterable[int], own: float) -> float | None:
        """Percent of all cores that `pids` may use; `own` is the run's CPU time so far, in seconds.

        None at the first reading, soon after one, and where the cores were others.
        """
        if self.reason is not None:
            return None
        self.used = found = busy(allowed(pids))
        if found is None:
            return None
        if self._last is None or self._last[1].cores != found.cores:
            self._last = (now, found, own)
            return None
        then, before, own_before = self._last
        if now - then < SHORTEST_S:
            return None
        self._last = (now, found, own)
        worked, mine = found.seconds - before.seconds, max(0.0, own - own_before)
        if worked == 0 and mine > SHORTEST_S:
            self.reason = "the kernel does not count how busy a core is (/proc/stat)"
            self.used = None
            return None
        return min(100.0, max(0.0, 100 * (worked - mine) / ((now - then) * len(found.cores))))
