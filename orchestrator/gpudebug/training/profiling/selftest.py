"""A program that uses the library as a training would and prints what it cost: `doctor --profiling` runs it.

Run by its path, in a Python that need not have gpudebug installed: the shim is on its PYTHONPATH.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

CALLS = 20
GROWTH_MB = 32
_ROUNDS, _LOOPS = 5, 10_000


def main() -> None:
    """Sections, memory and an error for the report; then, apart from it, what a section costs."""
    # As a training says it, by whatever path leads there.
    gpudebug = import_module("gpudebug")
    profiler, profile, profile_section = gpudebug.get_profiler(), gpudebug.profile, gpudebug.profile_section
    held = []
    for call in range(CALLS):
        with profile_section("outer"), profile_section("inner"):
            time.sleep(0.001)
        with profile("memory", track_memory=True):
            held.append(bytearray(GROWTH_MB << 20) if call == 0 else None)
    try:
        with profile_section("failing"):
            raise KeyError("as it should")
    except KeyError:
        pass
    profiler.save("report.json")
    fields = {"version": sys.version.split()[0], "package": gpudebug.__file__}
    print(json.dumps({**fields, **_costs(profiler, profile_section)}))


def _costs(profiler: Any, profile_section: Any) -> dict[str, float]:
    """Nanoseconds of CPU time: a section by name, one bound before, both while off, and a pair of clocks."""
    bound, clock = profiler.section("bound"), time.perf_counter_ns

    def empty() -> None:
        for _ in range(_LOOPS):
            pass

    def pair() -> None:
        for _ in range(_LOOPS):
            clock()
            clock()

    def by_name() -> None:
        for _ in range(_LOOPS):
            with profile_section("named"):
                pass

    def kept() -> None:
        for _ in range(_LOOPS):
            with bound:
                pass

    costs = {
        "pair_ns": _each(pair, empty),
        "section_ns": _each(by_name, empty),
        "bound_ns": _each(kept, empty),
    }
    profiler.disable()
    return {**costs, "section_off_ns": _each(by_name, empty), "bound_off_ns": _each(kept, empty)}


def _each(work: Callable[[], None], empty: Callable[[], None]) -> float:
    return (_least(work) - _least(empty)) / _LOOPS


def _least(work: Callable[[], None]) -> int:
    taken = []
    for _ in range(_ROUNDS):
        start = time.thread_time_ns()
        work()
        taken.append(time.thread_time_ns() - start)
    return min(taken)


if __name__ == "__main__":
    # Its own folder: the library's modules are not to be found under other names.
    sys.path.pop(0)
    main()
