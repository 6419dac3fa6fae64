"""What each process of a run's tree did, from scan to scan: what `core.command.program` decides by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from gpudebug.core.command.program import RunProcess, python_letters
from gpudebug.edges.proc import ProcessStat, words

# A process that serves a pool: Python's multiprocessing and joblib start it with one of these.
WORKER_COMMANDS = (
    "multiprocessing.spawn",
    "multiprocessing.forkserver",
    "multiprocessing.resource_tracker",
    "joblib.externals.loky",
)
# PyTorch names a DataLoader worker's main thread so; the kernel keeps 15 characters.
WORKER_NAME = "pt_data_worker"
# Seconds until a process has its own program, and its output leads where it will.
SETTLED_S = 1.0
_PROBE = os.path.join("training", "probe")
_MOST = 2000
_MOST_DESCRIPTORS = 1024


@dataclass(slots=True)
class _Deeds:
    """`looked` is the name under which its output and its options were looked at."""

    stat: ProcessStat
    since_s: float
    until_s: float
    serves: bool
    beside: float | None = None
    beside_s: float = 0.0
    beside_cpu_s: float = 0.0
    script: str = ""
    output: str = ""
    apart: str = ""
    buffers: bool = False
    cores: int = 0
    looked: str | None = None


class ProcessDeeds:
    """Of every process that a scan found what it did; `log` is the path of the run's log."""

    def __init__(self, log: str | None = None) -> None:
        self._log = os.path.realpath(log) if log is not None else None
        self._known: dict[tuple[int, int], _Deeds] = {}
        self._kinds: dict[tuple[int, int, str, bool], bool] = {}

    def take(self, now: float, members: Mapping[int, ProcessStat], adopter: int) -> None:
        """Add what a scan found; `adopter` is the process that adopts what daemonises itself."""
        alive = {pid: one for pid, one in members.items() if one.state != "Z"}
        serving: dict[int, bool] = {}
        working = {one.parent for one in alive.values() if not self._serves(one, alive, adopter, serving)}
        for pid, one in alive.items():
            deeds = self._known.get((pid, one.start))
            if deeds is None:
                if len(self._known) >= _MOST:
                    continue
                deeds = self._known[pid, one.start] = _Deeds(one, now, now, serving[pid])
            if deeds.beside is not None:
                deeds.beside_s += now - deeds.beside
                deeds.beside_cpu_s += max(0.0, one.cpu_s - deeds.stat.cpu_s)
            deeds.beside = now if pid in working else None
            deeds.stat, deeds.until_s, deeds.serves = one, now, serving[pid]
            if not deeds.serves and deeds.looked != one.name and now - deeds.since_s >= SETTLED_S:
                deeds.looked = one.name
                self._look(deeds, alive)

    def seen(self, t0: float, *, alive: Mapping[int, ProcessStat] | None = None) -> list[RunProcess]:
        """Return all of them, or those that are `alive`; times count from `t0`."""
        chosen = [
            d
            for (pid, start), d in self._known.items()
            if alive is None or (pid in alive and alive[pid].start == start and alive[pid].state != "Z")
        ]
        pids = {d.stat.pid for d in chosen}
        return [
            RunProcess(
                pid=d.stat.pid,
                parent=d.stat.parent if d.stat.parent in pids else 0,
                name=d.script or d.stat.name,
                since_s=round(max(0.0, d.since_s - t0), 2),
                until_s=round(max(0.0, d.until_s - t0), 2),
                cpu_s=round(d.stat.cpu_s, 2),
                beside_s=round(d.beside_s, 2),
                beside_cpu_s=round(d.beside_cpu_s, 2),
                serves=d.serves,
                output=d.output,
                apart=d.apart,
                buffers=d.buffers,
                cores=d.cores,
            )
            for d in chosen
        ]

    def _serves(
        self, one: ProcessStat, members: Mapping[int, ProcessStat], adopter: int, known: dict[int, bool]
    ) -> bool:
        if one.pid not in known:
            parent = members.get(one.parent)
            known[one.pid] = self._is_worker(one, adopter) or (
                parent is not None and self._serves(parent, members, adopter, known)
            )
        return known[one.pid]

    def _is_worker(self, one: ProcessStat, adopter: int) -> bool:
        """Tell whether it is a fork of a living parent that never called exec, or one of a process pool's.

        What daemonised itself is such a fork too, but its parent is gone and the tree's root adopted it.
        """
        if one.name == WORKER_NAME or (one.forked and one.parent != adopter):
            return True
        key = (one.pid, one.start, one.name, one.forked)
        if key not in self._kinds:
            if len(self._kinds) >= _MOST:
                self._kinds.clear()
            command = " ".join(words(one.pid, "cmdline") or ())
            self._kinds[key] = any(word in command for word in WORKER_COMMANDS)
        return self._kinds[key]

    def _look(self, deeds: _Deeds, members: Mapping[int, ProcessStat]) -> None:
        pid = deeds.stat.pid
        deeds.output = self._output(pid, members)
        with suppress(OSError):
            deeds.cores = len(os.sched_getaffinity(pid))
        argv = words(pid, "cmdline") or []
        if not argv or not deeds.stat.name.startswith("python"):
            return
        if any("ipykernel" in word for word in argv):
            deeds.output = "kernel"
        deeds.script = next((w.rpartition("/")[2] for w in argv[1:] if w.endswith((".py", ".pyz"))), "")
        letters, environ = python_letters(argv[1:]), words(pid, "environ")
        has = {name for word in environ or () for name, _, value in [word.partition("=")] if value}
        known = environ is not None
        deeds.apart = next((f"-{letter}" for letter in "ISE" if letter in letters), "")
        if not deeds.apart and known:
            there = any(word.startswith("PYTHONPATH=") and _PROBE in word for word in environ or ())
            deeds.apart = "env" if "GPUDEBUG_RECORDS_DIR" not in has else "" if there else "path"
        unbuffered = "u" in letters or ("PYTHONUNBUFFERED" in has and not {"I", "E"} & set(letters))
        deeds.buffers = known and not unbuffered

    def _output(self, pid: int, members: Mapping[int, ProcessStat]) -> str:
        try:
            path = os.readlink(f"/proc/{pid}/fd/1")
        except OSError:
            return ""
        if path.startswith("pipe:"):
            return f"pipe {self._reader(pid, path, members)}".rstrip()
        if path == self._log:
            return "log"
        return "null" if path == "/dev/null" else "file" if path.startswith("/") else "other"

    def _reader(self, pid: int, pipe: str, members: Mapping[int, ProcessStat]) -> str:
        return next((one.name for one in members.values() if one.pid != pid and reads(one.pid, pipe)), "")


def reads(pid: int, pipe: str) -> bool:
    """Tell whether a process has the end of a pipe (`pipe:[N]`) that is read."""
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd")[:_MOST_DESCRIPTORS]:
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}") == pipe and _is_read(pid, number):
                    return True
    return False


def _is_read(pid: int, number: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{number}", "rb") as file:
        flags = next(
            (line for line in file.read(4096).splitlines() if line.startswith(b"flags:")), b"flags:1"
        )
    return int(flags.partition(b":")[2], 8) & os.O_ACCMODE == os.O_RDONLY
