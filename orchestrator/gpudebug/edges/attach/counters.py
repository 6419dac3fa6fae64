"""What the kernel counts of a process that gpudebug did not start: read at two moments, and between them."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import NamedTuple

from gpudebug.edges.proc import tasks

_TICKS = os.sysconf("SC_CLK_TCK")
_MB = 2**20
_NANO = 1e-9
_KB = re.compile(rb"^(VmRSS|VmSwap):\s+(\d+) kB", re.MULTILINE)
_ALLOWED = re.compile(rb"^Cpus_allowed_list:\s+(\S+)", re.MULTILINE)
_SWITCHES = re.compile(rb"^(voluntary|nonvoluntary)_ctxt_switches:\s+(\d+)", re.MULTILINE)


class CountedProcess(NamedTuple):
    """A process's counters at one moment; None is what cannot be read. CPU and waits in seconds.

    `threads` holds, by number, how long each thread ran and how long it was ready without a core.
    """

    at: float
    user_s: float
    system_s: float
    major_faults: int
    read: int | None
    written: int | None
    threads: dict[int, tuple[float, float]]
    waits: int | None
    forced: int | None


def count(pid: int) -> CountedProcess | None:
    """Read them; None if the process is gone."""
    try:
        text = _read(pid, "stat")
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    numbers = tasks(pid)
    moved = _moved(pid)
    switched = _switched(pid, numbers)
    return CountedProcess(
        at=time.monotonic(),
        user_s=int(fields[11]) / _TICKS,
        system_s=int(fields[12]) / _TICKS,
        major_faults=int(fields[9]),
        read=moved[0],
        written=moved[1],
        threads={number: found for number in numbers if (found := scheduled(pid, number))},
        waits=switched[0],
        forced=switched[1],
    )


def scheduled(pid: int, tid: int) -> tuple[float, float] | None:
    """How long a thread ran and was ready to, in seconds (sched-stats.rst of the kernel); None if unknown."""
    with suppress(OSError, ValueError, IndexError):
        run, ready = _read(pid, f"task/{tid}/schedstat").split()[:2]
        return int(run) * _NANO, int(ready) * _NANO
    return None


def state_of(pid: int, tid: int) -> str | None:
    """`R`, `S`, `D`, … as the thread is now; None if it is gone."""
    with suppress(OSError, ValueError):
        text = _read(pid, f"task/{tid}/stat")
        return chr(text[text.rindex(b")") + 2])
    return None


def between(before: CountedProcess, after: CountedProcess, main: int) -> dict[str, object]:
    """Rates from one reading to another; `main` is the thread that is looked at. None is unknown."""
    span = max(after.at - before.at, 1e-6)
    user, system = after.user_s - before.user_s, after.system_s - before.system_s
    ran = thread_seconds(before, after, main)
    return {
        "seconds": round(span, 3),
        "cores": round((user + system) / span, 4),
        "system_share": round(system / (user + system), 4) if user + system > 0 else None,
        "main_running": _share(ran[0] if ran else None, span),
        "main_ready": _share(ran[1] if ran else None, span),
        "major_faults_s": round((after.major_faults - before.major_faults) / span, 3),
        "read_mb_s": _rate(before.read, after.read, span * _MB),
        "write_mb_s": _rate(before.written, after.written, span * _MB),
        "waits_s": _rate(before.waits, after.waits, span),
        "forced_s": _rate(before.forced, after.forced, span),
    }


def thread_seconds(before: CountedProcess, after: CountedProcess, tid: int) -> tuple[float, float] | None:
    """Return how long a thread ran and was ready to between two readings; None if that is not counted."""
    if tid not in after.threads or not any(run for run, _ in after.threads.values()):
        return None
    then, now = before.threads.get(tid, (0.0, 0.0)), after.threads[tid]
    return max(0.0, now[0] - then[0]), max(0.0, now[1] - then[1])


def standing(pid: int) -> dict[str, object]:
    """Return what a process has and may use: threads, cores of its affinity, memory in MB."""
    with suppress(OSError):
        text = _read(pid, "status")
        sizes = {name: int(kb) / 1024 for name, kb in _KB.findall(text)}
        allowed = _ALLOWED.search(text)
        return {
            "threads": len(tasks(pid)),
            "affinity": cores_in(allowed[1].decode()) if allowed else None,
            "rss_mb": sizes.get(b"VmRSS"),
            "swap_mb": sizes.get(b"VmSwap"),
        }
    return {}


def cores_in(text: str) -> int | None:
    """Return how many cores a list as `0-3,8` names; None if it is none."""
    total = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            return None
        total += int(last or first) - int(first) + 1
    return total


def _switched(pid: int, numbers: list[int]) -> tuple[int | None, int | None]:
    """Return how often its threads gave a core up to wait, and had it taken from them."""
    found = {b"voluntary": 0, b"nonvoluntary": 0}
    seen = False
    for number in numbers:
        with suppress(OSError):
            for kind, value in _SWITCHES.findall(_read(pid, f"task/{number}/status")):
                found[kind] += int(value)
                seen = True
    return (found[b"voluntary"], found[b"nonvoluntary"]) if seen else (None, None)


def _moved(pid: int) -> tuple[int | None, int | None]:
    """Bytes read from and written to storage; unknown of a process that may not be looked into."""
    with suppress(OSError, KeyError, ValueError):
        fields = dict(line.split(b": ") for line in _read(pid, "io").splitlines())
        return int(fields[b"read_bytes"]), int(fields[b"write_bytes"])
    return None, None


def _share(seconds: float | None, span: float) -> float | None:
    return None if seconds is None else round(min(1.0, seconds / span), 4)


def _rate(before: int | None, after: int | None, by: float) -> float | None:
    return None if before is None or after is None else round(max(0, after - before) / by, 3)


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read(1 << 16)
