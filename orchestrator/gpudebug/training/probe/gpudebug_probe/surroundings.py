"""Where this process runs and what it may use, for the first line that it reports: read once, a file or
two."""

from __future__ import annotations

import os
from binascii import crc32
from typing import Any

# By the key that is reported: words of the environment that schedulers and launchers set for each process.
VARIABLES = {
    "visible": "CUDA_VISIBLE_DEVICES",
    "omp": "OMP_NUM_THREADS",
    "slurm_cpus": "SLURM_CPUS_PER_TASK",
}
LONGEST = 200


def surroundings() -> dict[str, Any]:
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
