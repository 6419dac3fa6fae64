"""Which files the processes of one node of a job write into: those of another node than the run's have their
own, since no file system keeps whole what two nodes append to one file."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

VARIABLE = "GPUDEBUG_NODE"
"""`NAME/COUNT`: the node that the run was launched on, and of how many nodes the job is; of several alone."""
TRIES = 5
_LONGEST = 64


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
