"""How long the threads of a run waited for a core, and how many cores others wanted of those that it may use.

What counts against a neighbour is the time that the run's threads were ready to run and did not get a core,
not what the neighbour used of cores that were idle.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

NANO = 1e-9
MICRO = 1e-6

# Threads that are read a second, about 3 ms of work: of more than that the waiting is read less often.
THREADS_A_SECOND = 400.0
# Below this the clocks of the kernel's books differ by more than what is looked for.
SHORTEST_S = 0.5

NO_SCHEDSTAT = "the kernel does not count how long threads wait (/proc/PID/task/TID/schedstat)"
NO_QUOTA = "no control group counts how long it was throttled (cpu.stat)"
TICKS = os.sysconf("SC_CLK_TCK")
# The namespace that the kernel starts in (PROC_CGROUP_INIT_INO, include/linux/proc_ns.h).
_FIRST_NAMESPACE = "cgroup:[4026531835]"
ROOT = Path("/sys/fs/cgroup")


class Queueing(NamedTuple):
    """What waiting cost a run since the last reading; all in percent, None is unknown.

    `wait`, `throttled` and `stolen` are of one core: over all threads, the time that they waited for one,
    that a control group's quota held them, and that they waited because of others. `demand` is what others
    used and waited for of the run's cores, of all these: above 100 if they queue.
    """

    wait: float | None = None
    throttled: float | None = None
    stolen: float | None = None
    demand: float | None = None


def waited_ns(pid: int, thread: str) -> int | None:
    """Return how long a thread was ready to run without a core, in all its life; None if it is gone.

    The second field of schedstat: Documentation/scheduler/sched-stats.rst of the kernel.
    """
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int(os.read(fd, 128).split()[1])
    except (OSError, IndexError, ValueError):
        return None
    finally:
        os.close(fd)


def counts_waiting() -> bool:
    """Whether this kernel counts it (CONFIG_SCHED_INFO); else (gVisor) the file is missing or all zeros."""
    try:
        with open("/proc/self/schedstat", "rb") as file:
            return int(file.read().split()[0]) > 0
    except (OSError, IndexError, ValueError):
        return False


class ThreadWaits:
    """The waiting of all threads of some processes, summed from reading to reading."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], int] = {}
        self.threads = 0

    def read(self, pids: Iterable[int]) -> float:
        """Seconds waited since the last reading.

        A thread that was not there then counts whole; what one waited that ended in between is lost, so the
        sum is never negative and at most too small.
        """
        now: dict[tuple[int, str], int] = {}
        for pid in pids:
            try:
                threads = os.listdir(f"/proc/{pid}/task")
            except OSError:
                continue
            for thread in threads:
                waited = waited_ns(pid, thread)
                if waited is not None:
                    now[pid, thread] = waited
        total = 0
        for thread_of, waited in now.items():
            before = self._last.get(thread_of, 0)
            # A number that was given to another thread since begins at zero.
            total += waited - before if waited >= before else waited
        self._last = now
        self.threads = len(now)
        return total * NANO


class Throttling:
    """How long the quota of a process's control group, or of one above it, kept the group from running."""

    def __init__(self) -> None:
        self._files: list[Path] = []
        self._last: list[float | None] = []
        self._free = False

    def follow(self, pid: int | str) -> None:
        """Read this process's groups from now on."""
        files = [folder / "cpu.stat" for folder in folders("cpu", pid)]
        self._files = [file for file in files if throttled_s(file) is not None]
        self._last = [throttled_s(file) for file in self._files]
        # Without a group that counts it none may throttle, as far as all groups are in sight.
        self._free = not self._files and (any(map(Path.exists, files)) or in_root("cpu", pid))

    def read(self) -> float | None:
        """Seconds since the last reading, summed over cores, of the group that was throttled most."""
        if self._free:
            return 0.0
        now = [throttled_s(file) for file in self._files]
        spans = [a - b for a, b in zip(now, self._last, strict=True) if a is not None and b is not None]
        self._last = now
        return max([0.0, *spans]) if spans else None


def throttled_s(file: Path) -> float | None:
    """Seconds that a cpu.stat counts, of version 2 or 1; None if it counts none."""
    for line in lines(file):
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            if words[0] == "throttled_usec":
                return int(words[1]) * MICRO
            if words[0] == "throttled_time":
                return int(words[1]) * NANO
    return None


def running() -> int | None:
    """Return how many threads of the machine run or are ready to, without this one; None if unknown."""
    try:
        with open("/proc/loadavg", "rb") as file:
            found = int(file.read().split()[3].split(b"/")[0])
    except (OSError, IndexError, ValueError):
        return None
    return found - 1 if found > 0 else None


class _Mark(NamedTuple):
    """Where a span of the waiting began: the clock, and CPU seconds so far of the run and of all cores."""

    at: float
    own: float
    used: UsedCores


class CoreQueue:
    """The waiting of a run, from reading to reading."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        self._waits = ThreadWaits()
        self._throttling = Throttling()
        self._counts = counts_waiting()
        self._ready: list[int] = []
        self._mark: _Mark | None = None
        if not self._counts:
            self.missing.update(dict.fromkeys(("cpu_wait", "cpu_stolen", "foreign_demand"), NO_SCHEDSTAT))

    def start(self, pid: int) -> None:
        """The job was launched as this process."""
        self._throttling.follow(pid)

    def glance(self) -> None:
        """Count who is ready to run now; cheap enough for each tick."""
        if self._counts and (found := running()) is not None:
            self._ready.append(found)

    def read(self, now: float, pids: Iterable[int], own: float, used: UsedCores | None) -> Queueing:
        """`own` is the run's CPU time so far in seconds, `used` that of the cores that it may use.

        Nothing is known at the first reading, soon after one, and where the cores were others. Of very many
        threads the waiting is read less often.
        """
        mark = self._mark
        if mark is not None and now - mark.at < max(SHORTEST_S, self._waits.threads / THREADS_A_SECOND):
            return Queueing()
        throttled = self._throttling.read()
        waited = self._waits.read(pids) if self._counts else None
        ready, self._ready = self._ready, []
        self._mark = _Mark(now, own, used) if used is not None else None
        if throttled is None:
            self.missing["cpu_throttled"] = NO_QUOTA
        if mark is None or used is None or used.cores != mark.used.cores:
            return Queueing()
        span = now - mark.at
        wait = waited / span if waited is not None else None
        mine = max(0.0, own - mark.own) / span
        others = max(0.0, (used.seconds - mark.used.seconds) / span - mine)
        everybody = (used.machine - mark.used.machine) / span
        held = throttled / span if throttled is not None else None
        return _queueing(wait, held, mine, others, everybody - mine - others, ready, used)


def _queueing(
    wait: float | None,
    held: float | None,
    mine: float,
    others: float,
    elsewhere: float,
    ready: list[int],
    used: UsedCores,
) -> Queueing:
    """In cores: what the run waited, was `held` by a quota and used; what others used here, and elsewhere."""
    throttled = 100 * held if held is not None else None
    if wait is None:
        return Queueing(throttled=throttled)
    stolen = min(max(0.0, wait - (held or 0.0)), others)
    demand = others + others_waiting(wait, mine, others, elsewhere, ready, whole=used.whole)
    return Queueing(100 * wait, throttled, 100 * stolen, 100 * demand / len(used.cores))


def others_waiting(
    wait: float, mine: float, others: float, elsewhere: float, ready: list[int], *, whole: bool
) -> float:
    """For how many cores others waited, on average; not below minus what they used.

    Who is ready to run is counted for the machine as a whole (`ready`, a count each tick): what neither works
    nor is the run's own waiting is others'. Where the run may use only some cores, or the kernel does not
    count, cores are taken to be shared fairly: others wait as long for what they get as the run does.
    """
    fair = others * wait / mine if mine > 0 else 0.0
    if not ready:
        return fair
    counted = sum(ready) / len(ready) - mine - others - elsewhere - wait
    if whole:
        return max(counted, -others)
    return min(max(counted, 0.0), fair)


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


def folders(controller: str, pid: int | str = "self") -> list[Path]:
    """Return the folders of the process's group and of those above it that may hold a limit, own first."""
    found = []
    for line in lines(Path(f"/proc/{pid}/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = ROOT / controllers if controllers else ROOT
        own = mount / path.lstrip("/")
        above = [parent for parent in own.parents if parent == mount or mount in parent.parents]
        found += [own, *above]
    return found


def in_root(controller: str, pid: int | str = "self") -> bool:
    """Tell whether the process is in the group that holds all others, which nothing limits."""
    try:
        namespace = os.readlink(f"/proc/{pid}/ns/cgroup")
    except OSError:
        return False
    groups = [line.split(":", 2) for line in lines(Path(f"/proc/{pid}/cgroup"))]
    own = [path for _, names, path in groups if not names or controller in names.split(",")]
    return namespace == _FIRST_NAMESPACE and bool(own) and set(own) == {"/"}


def lines(path: Path) -> list[str]:
    """Return the lines of a file of the kernel's; none if it is not there, or not for us."""
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError, PermissionError, ProcessLookupError):
        return []
