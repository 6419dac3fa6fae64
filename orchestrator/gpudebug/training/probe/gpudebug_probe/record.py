"""The file of a run into which its training processes write: a JSON object a line, never too many."""

from __future__ import annotations

import json
import os
import time
from binascii import crc32
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


FILE = "probe.jsonl"
# All processes of a run together; the last part is kept for the lines of the end.
LARGEST = 4 << 20
RESERVE = 256 << 10
# The fuller the file, the rarer it is written: each twelfth doubles the distance.
LEVELS = 12
# Of it, what stacks may fill: beats go on when there is no more room for these.
STACKS = LARGEST // 2
VARIABLE = "GPUDEBUG_NODE"
"""`NAME/COUNT`: the node that the run was launched on, and of how many nodes the job is; of several alone."""
TRIES = 5
_LONGEST = 64
# By the key that is reported: words of the environment that schedulers and launchers set for each process.
VARIABLES = {
    "visible": "CUDA_VISIBLE_DEVICES",
    "omp": "OMP_NUM_THREADS",
    "slurm_cpus": "SLURM_CPUS_PER_TASK",
}
LONGEST = 200


class RecordFile:
    """This process's end of the file. OSError if it cannot be written."""

    def __init__(self, run: str) -> None:
        self.pid = os.getpid()
        self._host = host()
        file = file_of(FILE, os.environ)
        self._path = os.path.join(run, file)
        self._share = share_of(file, FILE, os.environ)
        self._size = 0
        # Of a rank other than 0, whose stacks may take half of the room that there is for any.
        self.others = False

    @property
    def rarity(self) -> int:
        """How many times as far apart as at first lines should be; 0 once there is no room for more."""
        return self._rarity(LARGEST - RESERVE)

    @property
    def rarity_of_stacks(self) -> int:
        return self._rarity(self._room_of_stacks)

    def _rarity(self, whole: int) -> int:
        room = int(whole * self._share)
        return 0 if self._size >= room else 1 << (LEVELS * self._size // room)

    def line(self, kind: str, **entries: Any) -> str:
        fields = {
            "kind": kind,
            "pid": self.pid,
            "host": self._host,
            "t": round(time.monotonic(), 6),
            **entries,
        }
        return json.dumps(fields, default=str, separators=(",", ":")) + "\n"

    def clock(self) -> dict[str, list[float]]:
        """Return what tells how far this node's clock is from the others'; nothing in a job of one node."""
        if job_of(os.environ) is None:
            return {}
        fd = self._open()
        try:
            return {"clock": clock(fd)}
        finally:
            os.close(fd)

    def append(self, lines: list[str], last: bool = False) -> None:
        """Add whole lines, as far as there is room; `last`: in the part that is kept for the end."""
        self._append(lines, LARGEST if last else LARGEST - RESERVE)

    def append_stacks(self, lines: list[str]) -> None:
        self._append(lines, self._room_of_stacks)

    @property
    def _room_of_stacks(self) -> int:
        return STACKS // 2 if self.others else STACKS

    def _open(self) -> int:
        # Opened each time: a descriptor kept open may be closed, and its number used, by the training.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self._path, flags, 0o600)

    def _append(self, lines: list[str], whole: int) -> None:
        fd, room = self._open(), int(whole * self._share)
        try:
            self._size = os.fstat(fd).st_size
            for line in lines:
                data = line.encode("ascii")
                if self._size + len(data) <= room:
                    self._size += len(data)
                    if os.write(fd, data) < len(data):
                        raise OSError("no room for a whole line")
        finally:
            os.close(fd)


def job_of(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the launch's node and how many nodes there are; None outside of a job of several."""
    name, _, count = environ.get(VARIABLE, "").rpartition("/")
    return (name, int(count)) if name and count.isdigit() and int(count) > 1 else None


def file_of(name: str, environ: Mapping[str, str]) -> str:
    """`probe.jsonl` on the node of the launch, `probe.n1.jsonl` on another one, n1."""
    job, node = job_of(environ), environ.get("SLURMD_NODENAME", "")
    plain = 0 < len(node) <= _LONGEST and all(c.isalnum() or c in "-_." for c in node)
    if job is None or job[0] == node or not plain:
        return name
    stem, _, kind = name.rpartition(".")
    return stem + "." + node + "." + kind


def share_of(file: str, name: str, environ: Mapping[str, str]) -> float:
    """Return how much of the room of one file this one has: those of all other nodes together fill one."""
    job = job_of(environ)
    return 1.0 if job is None or file == name else 1.0 / min(job[1] - 1, 16)


def clock(fd: int) -> list[float]:
    """Measure this node's monotonic clock by a file that is touched on the file system of all nodes: when it
    was, within how many seconds, and the file's time then."""
    best = [0.0, float("inf"), 0.0]
    for _ in range(TRIES):
        before = time.monotonic()
        os.utime(fd)
        stamp = os.fstat(fd).st_mtime
        after = time.monotonic()
        if (after - before) / 2 < best[1]:
            best = [(before + after) / 2, (after - before) / 2, stamp]
    return best


def surroundings() -> dict[str, object]:
    """`boot` tells whose monotonic clock it is: the clocks of two processes compare if it is the same."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    found = {name: _cut(os.environ.get(variable)) for name, variable in VARIABLES.items()}
    return {"node": _cut(node), "boot": _boot(), "cores": cores(), "affinity": affinity(), **found}


def host() -> str:
    """Whose process numbers this process's is one of: hosts that share a folder, and containers of one host,
    number alike."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        space = 0
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    return f"{crc32(f'{node} {_boot()} {space}'.encode('utf-8', 'replace')):08x}"


def cores() -> float | None:
    """Return the cores that this process may use: its affinity, or what its control group leaves of them."""
    affinity = getattr(os, "sched_getaffinity", None)
    known = [float(len(affinity(0)))] if affinity is not None else []
    quota = _quota(_read("/sys/fs/cgroup/cpu.max"))
    return min([*known, *([quota] if quota else [])], default=None)


def affinity() -> str | None:
    """Return the CPUs that this process may run on, as `taskset` writes them: `0-3,8`; None if unknown."""
    ask = getattr(os, "sched_getaffinity", None)
    if ask is None:
        return None
    spans: list[list[int]] = []
    for cpu in sorted(ask(0)):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return _cut(",".join(str(a) if a == b else str(a) + "-" + str(b) for a, b in spans))


def _quota(text: str | None) -> float | None:
    """Cores by `cpu.max` of version 2: `quota period` in microseconds; None without a limit."""
    try:
        quota, period = (text or "").split()
        return int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None


def _boot() -> str | None:
    return _cut((_read("/proc/sys/kernel/random/boot_id") or "").strip() or None)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(LONGEST)
    except OSError:
        return None


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:LONGEST]
