"""What a section costs, over a bare pair of clocks and over its peers, interleaved in one process.

Thread CPU time, pinned, the empty loop's taken off; medians of the rounds.
"""

from __future__ import annotations

import gc
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.table import Row

LOOPS = 20_000
ROUNDS = 11
IMPORTS = 15
# The slow peers need fewer loops to be as exact.
PEER_LOOPS = 2_000


def rows() -> Iterator[Row]:
    """Ratios of a section's cost, and what the import takes; a peer that is not installed has no row."""
    taken = json.loads(
        subprocess.run(
            [sys.executable, "-m", "tests.bench.sections"], capture_output=True, text=True, check=True
        ).stdout
    )
    pair = taken["pair"]
    yield Row("a section, over two clocks", taken["section"] / pair, 10.0, f"x {pair:.0f} ns")
    yield Row("a section, durations that vary", (taken["section"] + taken["varied"]) / pair, 11.0, "x")
    yield Row("a section bound before, over two clocks", taken["bound"] / pair, 10.0, "x")
    yield Row("a section bound before, while off", taken["bound off"] / pair, 3.5, "x")
    yield Row("a section by name, while off", taken["section off"] / pair, 2.0, "x")
    if "record_function" in taken:
        yield Row("a section, over record_function", taken["section"] / taken["record_function"], 0.20, "x")
    yield Row("from gpudebug import profile_section", _import_ms(), 5.0, "ms CPU over python -c pass")


def _import_ms() -> float:
    # Installed packages have their bytecode beside them; so must ours.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def milliseconds(code: str) -> float:
        process = subprocess.Popen([sys.executable, "-c", code], env=env)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return 1000 * (usage.ru_utime + usage.ru_stime)

    code = "from gpudebug import profile_section"
    differences = [milliseconds(code) - milliseconds("pass") for _ in range(IMPORTS + 1)]
    return statistics.median(differences[1:])


def _measure() -> dict[str, float]:
    """Nanoseconds of each variant."""
    from gpudebug import get_profiler, profile_section

    profiler, clock = get_profiler(), time.perf_counter_ns
    bound = profiler.section("bound")
    peer = _torch()
    peers = {"record_function": peer} if peer else {}

    def empty(loops: int) -> None:
        for _ in range(loops):
            pass

    def pair(loops: int) -> None:
        for _ in range(loops):
            clock()
            clock()

    def section(loops: int) -> None:
        for _ in range(loops):
            with profile_section("x"):
                pass

    def kept(loops: int) -> None:
        for _ in range(loops):
            with bound:
                pass

    variants = {
        "empty": (True, empty),
        "pair": (True, pair),
        "section": (True, section),
        "bound": (True, kept),
        "section off": (False, section),
        "bound off": (False, kept),
        **{name: (True, peer) for name, peer in peers.items()},
    }
    taken: dict[str, list[float]] = {name: [] for name in variants}
    gc.disable()
    for _ in range(ROUNDS):
        for name in random.sample(sorted(variants), len(variants)):
            on, work = variants[name]
            loops = PEER_LOOPS if name in peers else LOOPS
            (profiler.enable if on else profiler.disable)()
            start = time.thread_time_ns()
            work(loops)
            taken[name].append((time.thread_time_ns() - start) / loops)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    costs = {name: cost - medians["empty"] for name, cost in medians.items() if name != "empty"}
    return {**costs, "varied": _folding(True) - _folding(False)}


def _folding(varied: bool) -> float:
    """Nanoseconds a call that putting durations together takes: all alike, or those of real work."""
    from gpudebug.training.profiling.tree import Figures

    draw = random.Random(1)
    batches = [
        [int(draw.lognormvariate(9.2, 0.5) if varied else draw.gauss(95, 5)) for _ in range(256)]
        for _ in range(200)
    ]
    figures, start = Figures(), time.thread_time_ns()
    for batch in batches:
        figures.take(batch)
    return (time.thread_time_ns() - start) / figures.calls


def _torch() -> Callable[[int], None] | None:
    try:
        from torch.profiler import record_function
    except ImportError:
        return None
    function: Any = record_function

    def run(loops: int) -> None:
        for _ in range(loops):
            with function("x"):
                pass

    return run


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(_measure()))
