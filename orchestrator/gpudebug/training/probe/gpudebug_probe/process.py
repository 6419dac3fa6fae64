"""What the process itself spends: garbage collection, CPU time, threads, memory."""

from __future__ import annotations

import gc
import os
import resource
import time
from typing import Any

from .recorder import Recorder


def install(torch: Any, recorder: Recorder) -> None:
    """Time every garbage collection; read the rest when a beat is written."""
    began = 0.0

    def collecting(phase: str, info: dict[str, int]) -> None:
        # Called inside whatever allocates: nothing here may fail or allocate much.
        nonlocal began
        if not recorder.on:
            return
        if phase == "start":
            began = time.monotonic()
        elif began:
            counters = recorder.counters
            counters["gc_n"] = counters.get("gc_n", 0) + 1
            counters["gc_s"] = counters.get("gc_s", 0.0) + time.monotonic() - began
            began = 0.0

    def begin() -> None:
        recorder.counters["gc_n"] = recorder.counters["gc_s"] = 0
        if collecting not in gc.callbacks:
            gc.callbacks.append(collecting)

    def refresh() -> None:
        recorder.counters["cpu_s"] = time.process_time()
        recorder.facts.update(_facts(torch))

    recorder.on_begin(begin)
    recorder.before_beat(refresh)


def _facts(torch: Any) -> dict[str, Any]:
    interop = getattr(torch, "get_num_interop_threads", None)
    return {
        "threads": torch.get_num_threads(),
        "interop_threads": interop() if interop else None,
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "peak_host_mb": round(_peak_host_kb() / 1024, 1),
    }


def _peak_host_kb() -> int:
    """The most memory that this process had resident; getrusage's may be that of the program before it."""
    try:
        with open("/proc/self/status", "rb") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(b"VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
