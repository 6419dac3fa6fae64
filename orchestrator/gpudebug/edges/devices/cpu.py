"""The CPU stand-in for a GPU: how busy the training process keeps N cores.

It is a real measurement of a CPU training run and never presented as a GPU's.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from pathlib import Path

from gpudebug.core.samples.row import DeviceReading
from gpudebug.core.words import CPU, STAND_IN
from gpudebug.edges.devices import queueing
from gpudebug.edges.devices.proctree import ProcessTree, cpu_clock
from gpudebug.edges.proc import MB, PAGE, ProcessStat, read_process

NOT_HERE = "the CPU stand-in for a GPU has no such counter"
LACKS = ("mem_util", "power_w", "sm_clock_mhz", "mem_clock_mhz", "temperature_c", "throttle")

# Of what training processes report, at most this much is read at once: all of it is at most 4 MB.
MOST_READ = 8 << 20

RESCAN_S = 1.0
EAGER_S = 2.0
# Shorter spans are the width of the scheduler's own bookkeeping: no figure is made from one.
SHORTEST_S = 0.02


# Of several training processes another one is followed once it is this much busier: ranks take turns.
BUSIER = 1.1


class CpuDevice:
    """`gpu_util` is the CPU time of the training process over `cores` cores, in percent, at most 100.

    The training process is the busiest of those that tell in the file `probe` that they train, as soon as
    there is one; till then the busiest program of the tree (`core.command.program`).
    """

    source = CPU.name

    def __init__(self, cores: float, tree: ProcessTree, probe: str | None = None) -> None:
        self.cores = cores
        self.missing = dict.fromkeys(LACKS, NOT_HERE)
        self._tree = tree
        self._trainings = Trainings(probe) if probe else None
        self._total_mb = memory_limit_mb()
        self._followed: tuple[int, int] | None = None
        self._last: tuple[float, float] = (math.inf, 0.0)
        self._scanned = -math.inf
        self._util: float | None = None

    def describe(self) -> list[dict[str, object]]:
        return [{**describe(self.cores), "missing": dict(self.missing)}]

    def start(self, job_pid: int | None) -> None:
        """The job is the training process until a busier one is seen."""
        job = read_process(job_pid) if job_pid is not None else None
        self._follow(job, time.monotonic())

    def read(self, elapsed: float, final: bool = False) -> list[DeviceReading]:
        """One reading; `new_samples` is 0 if the training process is gone or was only just found."""
        now = time.monotonic()
        fresh = self._measure(now)
        # A shell execs, a launcher forks: in the first moments the tree is another at each tick.
        if self._followed is None or elapsed < EAGER_S or now - self._scanned >= RESCAN_S:
            self._choose(now)
        return [
            DeviceReading(
                gpu_util=self._util,
                mem_used_mb=resident_mb(self._followed[0]) if self._followed else None,
                mem_total_mb=self._total_mb,
                gpu_index=0,
                gpu_uuid=STAND_IN,
                new_samples=int(fresh),
            )
        ]

    def summary(self) -> dict[str, object]:
        return {"training_pid": self._followed[0] if self._followed else None}

    def _measure(self, now: float) -> bool:
        """Turn the CPU time since the last reading into utilisation; False without any."""
        if self._followed is None:
            return False
        used = cpu_clock(self._followed[0])
        if used is None:
            self._followed = None
            return False
        then, before = self._last
        if now - then < SHORTEST_S:
            return False
        # Both clocks are read one after the other, so a full core can read a hair above 100.
        self._util = min(100.0, max(0.0, 100 * (used - before) / ((now - then) * self.cores)))
        self._last = (now, used)
        return True

    def _choose(self, now: float) -> None:
        self._scanned = now
        members = self._tree.scan()
        trainings = self._trainings.among(members) if self._trainings else []
        chosen = busiest(trainings, self._followed) or next(iter(self._tree.programs()), None)
        if chosen is None or (chosen.pid, chosen.start) != self._followed:
            self._follow(chosen, now)

    def _follow(self, process: ProcessStat | None, now: float) -> None:
        """Measure this process from now on."""
        used = cpu_clock(process.pid) if process else None
        if process is None or used is None:
            self._followed = None
            return
        self._followed = (process.pid, process.start)
        self._last = (now, used)


class Trainings:
    """The processes that wrote into `path` that they train; read on from where it was read last.

    Any process of the run can write there: only a line's kind and number are believed, and of a number only
    that it is one of the run's own processes.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._read_to = 0
        self._pids: set[int] = set()

    def among(self, tree: dict[int, ProcessStat]) -> list[ProcessStat]:
        """Return those that are alive."""
        self._read_on()
        return [tree[pid] for pid in self._pids if pid in tree and tree[pid].state != "Z"]

    def _read_on(self) -> None:
        try:
            if os.stat(self._path).st_size <= self._read_to:
                return
            with open(self._path, "rb") as file:
                file.seek(self._read_to)
                data = file.read(MOST_READ)
        except OSError:
            return
        # The last line may not be written yet; one that is longer than all that is read is not ours.
        end = len(data) if len(data) == MOST_READ else data.rfind(b"\n") + 1
        self._read_to += end
        self._pids.update(pid for line in data[:end].split(b"\n") if (pid := _began(line)))


def busiest(told: list[ProcessStat], followed: tuple[int, int] | None) -> ProcessStat | None:
    """Return the one with the most CPU time, or the one that is `followed` if it has nearly as much."""
    most = max(told, key=lambda process: process.cpu_s, default=None)
    same = next((process for process in told if (process.pid, process.start) == followed), None)
    return same if most and same and most.cpu_s <= BUSIER * same.cpu_s else most


def _began(line: bytes) -> int | None:
    """Return the process that this line of probe.jsonl says has begun to train."""
    if b'"start"' not in line:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    pid = record.get("pid") if isinstance(record, dict) and record.get("kind") == "start" else None
    return pid if isinstance(pid, int) else None


def describe(cores: float) -> dict[str, object]:
    """Return the stand-in as the keys of `core.records.DeviceInfo`."""
    return {
        "index": 0,
        "uuid": STAND_IN,
        "name": processor_name(),
        "kind": CPU.name,
        "memory_total_mb": memory_limit_mb(),
        "driver": None,
        "cores": cores,
    }


def resident_mb(pid: int) -> float | None:
    """Resident memory of the process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE / MB
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None


def processor_name() -> str:
    """Return the processor's model as /proc/cpuinfo has it, else its architecture."""
    for line in queueing.lines(Path("/proc/cpuinfo")):
        if line.startswith("model name"):
            return line.partition(":")[2].strip().replace(",", " ")
    return f"{platform.machine()} processor"


def available_cores() -> float:
    """Return the cores that this process may use: its affinity, and the cgroup's quota if that is less."""
    cores = float(len(os.sched_getaffinity(0)))
    quotas = [found for folder in queueing.folders("cpu") if (found := quota(folder)) is not None]
    return min([cores, *quotas])


def memory_limit_mb() -> float | None:
    """Return the memory that this process may use: the machine's, or the cgroup's limit if that is less."""
    facts = queueing.lines(Path("/proc/meminfo"))
    limits = [int(line.split()[1]) / 1024 for line in facts if line.startswith("MemTotal")]
    for folder in queueing.folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = "".join(queueing.lines(folder / name)).strip()
            if text.isdigit():
                limits.append(int(text) / MB)
    return min(limits) if limits else None


def quota(folder: Path) -> float | None:
    """Return the CPU quota in cores that a cgroup's folder sets; None if it sets none."""
    # Version 2: "QUOTA PERIOD" or "max PERIOD"; version 1: a file each, -1 for none. Both in us.
    words = " ".join(queueing.lines(folder / "cpu.max")).split()
    if not words:
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = [word for name in files for word in queueing.lines(folder / name)]
    if len(words) != 2 or not words[0].isdigit() or not words[1].isdigit():
        return None
    allowed, period = int(words[0]), int(words[1])
    return allowed / period if allowed > 0 and period > 0 else None
