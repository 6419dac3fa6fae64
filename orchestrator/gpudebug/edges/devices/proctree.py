"""The run's process tree, read from /proc: who is in it, and what it costs."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable

from gpudebug.core.command.program import RunProcess, programs
from gpudebug.core.samples.row import HostReading
from gpudebug.edges.devices.deeds import ProcessDeeds
from gpudebug.edges.devices.queueing import CoreQueue, OthersLoad, Queueing
from gpudebug.edges.proc import (
    MB,
    ProcessStat,
    children,
    everything,
    lists_children,
    read_process,
    walked_children,
)

# CPU time per process is counted in steps of 10 ms: a rate over less than this would be noise.
SHORTEST_S = 0.1

# What `srun` asks for is started by the scheduler's daemon: no child of ours, but with the run's mark here.
VARIABLE = "GPUDEBUG_RUN"
LIKE_LOGS = (".csv", ".jsonl", ".wandb")
EVENTS = "tfevents"
MOST_FILES = 64
_MOST_DESCRIPTORS = 1024
# Loggers open their files as a training starts, and keep them open.
_OFTEN, _SELDOM = 10, 5


def cpu_clock(pid: int) -> float | None:
    """CPU time in s of all threads of the process, ended ones too; None if it is gone.

    It is the process's CPU clock in steps of ns, or where the kernel offers none (gVisor) from
    /proc in steps of 10 ms. The clock's number is made from the PID: clock_getcpuclockid(3), and
    MAKE_PROCESS_CPUCLOCK with CPUCLOCK_SCHED in include/linux/posix-timers_types.h.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        process = read_process(pid)
        return process.cpu_s if process else None


def moved_bytes(pid: int) -> tuple[int, int] | None:
    """Bytes that the process and its reaped children read from and wrote to storage; None if it is gone.

    Raises `PermissionError` for a process of another user.
    """
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            fields = dict(line.split(b": ") for line in file.read().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(fields[b"read_bytes"]), int(fields[b"write_bytes"])


def marked(marker: str, known: Collection[int]) -> list[int]:
    """PIDs, but for those that are `known`, of processes with this mark; of other users none can be read."""
    entry = b"\0" + os.fsencode(f"{VARIABLE}={marker}") + b"\0"
    return [pid for pid in everything() if pid not in known and entry in b"\0" + _environ(pid)]


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


class ProcessTree:
    """All descendants of `root` but `exclude` and what these started, rescanned by `scan`.

    `root` is the warden: a subreaper, so that a daemonised process stays in its tree. `members`
    holds the last scan, parents before their children. With `attached` the root is a job that gpudebug did
    not start, itself a member. With a `marker` those that carry it are members, too, whoever started them:
    looked for once a second, as `read` is called. `log` is the run's.
    """

    def __init__(
        self,
        root: int,
        exclude: Iterable[int] = (),
        attached: bool = False,
        marker: str | None = None,
        log: str | None = None,
    ) -> None:
        self.root = root
        self.attached = attached
        self.exclude = frozenset(exclude)
        self._marker = marker
        self._steps: list[int] = []
        self.job: int | None = None
        self.missing: dict[str, str] = {}
        self.members: dict[int, ProcessStat] = {}
        self._last: tuple[float, float, tuple[int, int] | None] | None = None
        self._listed = lists_children()
        self._others = OthersLoad()
        self._logs = OpenLogs()
        self._deeds = ProcessDeeds(log)
        self._t0 = time.monotonic()
        self._queue = CoreQueue()
        self._queue.start(root)

    def start(self, job_pid: int | None) -> None:
        """The job was launched; the host columns count from here."""
        self.job, self._t0 = job_pid, time.monotonic()
        if job_pid is not None:
            self._queue.start(job_pid)
        self.read()

    def glance(self) -> None:
        """Count who is ready to run; for each tick of the sampler."""
        self._queue.glance()

    @property
    def adopter(self) -> int:
        """The process that adopts what daemonises itself; 0, the number of none, if that is not ours."""
        return 0 if self.attached else self.root

    @property
    def unknown(self) -> bool:
        """Whether only its mark could tell the run's processes here, and none has it: then anybody may be the
        run's, as one that another host's daemon started without our variables."""
        return self._marker is not None and self.root == os.getpid() and not self.members

    @property
    def written(self) -> list[str]:
        """Files of loggers that the job was seen to hold open to write."""
        return list(self._logs.paths)

    @property
    def seen(self) -> list[RunProcess]:
        """What each process did that was ever in the tree; times count from the launch."""
        return self._deeds.seen(self._t0)

    def programs(self) -> list[ProcessStat]:
        """Return the programs that are alive, the busiest first."""
        found = programs(self._deeds.seen(self._t0, alive=self.members))
        return [self.members[one.pid] for one in found]

    def scan(self) -> dict[int, ProcessStat]:
        """Who is in the tree now."""
        below = children if self._listed else walked_children()
        found: dict[int, ProcessStat] = {}
        pending = [*below(self.root), *self._steps]
        root = read_process(self.root) if self.attached else None
        if root is not None:
            # Whoever forked it, it serves no one here.
            found[self.root] = root._replace(forked=False)
        while pending:
            pid = pending.pop()
            if pid in self.exclude or pid in found:
                continue
            process = read_process(pid)
            if process is not None:
                found[pid] = process
                pending += below(pid)
        self.members = found
        self._deeds.take(time.monotonic(), found, self.adopter)
        return found

    def read(self) -> HostReading:
        """Return the host columns: rates since the last call, memory and count as they are.

        Rates are empty at the first call and right after another. `cpu_util` is in percent of one
        core. Sums include what a process's dead and reaped children used, so a short-lived one between
        two ticks is not lost. `rss_mb` adds resident sets: pages that forked processes share count once
        for each.
        `foreign_cpu` is what others used of the cores that the tree may use, in percent of all these;
        `cpu_wait` and the columns after it are those of `Queueing`.
        """
        if self._marker is not None:
            self._steps = marked(self._marker, {self.root, *self.exclude})
        alive = [process for process in self.scan().values() if process.state != "Z"]
        self._logs.look(process.pid for process in alive)
        now = time.monotonic()
        rates: tuple[float | None, float | None, float | None] = (None, None, None)
        others, queueing = None, Queueing()
        if self._last is None or now - self._last[0] >= SHORTEST_S:
            busy = self._cpu_seconds()
            moved = self._moved_bytes()
            rates = self._rates(now, busy, moved)
            # This process is no stranger either.
            pids, own = [process.pid for process in alive], busy + time.process_time()
            others = self._others.read(now, pids, own)
            queueing = self._queue.read(now, pids, own, self._others.used)
            self._last = (now, busy, moved)
        rss = sum(process.rss_mb for process in alive)
        if self._others.reason is not None:
            self.missing["foreign_cpu"] = self._others.reason
        self.missing.update(self._queue.missing)
        return HostReading(rates[0], rss, rates[1], rates[2], len(alive), others, *queueing)

    def _cpu_seconds(self) -> float:
        # The root's own time is the warden's; what it has reaped was the job's.
        root = None if self.attached else read_process(self.root)
        reaped = root.reaped_s if root else 0.0
        return reaped + sum(process.cpu_s + process.reaped_s for process in self.members.values())

    def _moved_bytes(self) -> tuple[int, int] | None:
        # The root's own traffic is the warden's, next to nothing; what it has reaped was the job's.
        try:
            totals = [moved for pid in {self.root, *self.members} if (moved := moved_bytes(pid)) is not None]
        except PermissionError as error:
            # A sum without one process would be less than the truth.
            self.missing.update(dict.fromkeys(("read_mb_s", "write_mb_s"), str(error)))
            return None
        return sum(read for read, _ in totals), sum(written for _, written in totals)

    def _rates(
        self, now: float, busy: float, moved: tuple[int, int] | None
    ) -> tuple[float | None, float | None, float | None]:
        if self._last is None:
            return None, None, None
        then, busy_then, moved_then = self._last
        span = now - then
        # A process that ends between two scans unseen can only lower a sum: no rate is negative.
        cpu = max(0.0, 100 * (busy - busy_then) / span)
        if moved is None or moved_then is None:
            return cpu, None, None
        read, written = (max(0.0, (a - b) / MB / span) for a, b in zip(moved, moved_then, strict=True))
        return cpu, read, written


class OpenLogs:
    """Those seen so far, by their real paths."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._looks = 0

    def look(self, pids: Iterable[int]) -> None:
        """Look at each of the first calls, then at each fifth: a process may have many descriptors."""
        self._looks += 1
        if self._looks > _OFTEN and self._looks % _SELDOM:
            return
        for pid in pids:
            self._look_at(f"/proc/{pid}")

    def _look_at(self, process: str) -> None:
        try:
            numbers = os.listdir(f"{process}/fd")[:_MOST_DESCRIPTORS]
        except OSError:  # Gone, or of another user.
            return
        for number in numbers:
            try:
                path = os.readlink(f"{process}/fd/{number}")
                if path in self.paths or not is_like_log(path) or len(self.paths) >= MOST_FILES:
                    continue
                if _may_write(f"{process}/fdinfo/{number}"):
                    self.paths[path] = None
            except (OSError, ValueError):
                continue


def is_like_log(path: str) -> bool:
    """Tell whether a file is named as loggers name theirs."""
    name = path.rpartition("/")[2]
    return path.startswith("/") and (EVENTS in name or name.endswith(LIKE_LOGS))


def _may_write(info: str) -> bool:
    with open(info, "rb") as file:
        lines = file.read(4096).splitlines()
    flags = next((line for line in lines if line.startswith(b"flags:")), b"flags:0")
    return bool(int(flags.partition(b":")[2], 8) & os.O_ACCMODE)
