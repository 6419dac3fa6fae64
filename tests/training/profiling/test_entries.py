"""The long way of a call: event loops, options, memory, what is lent and given back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.profiled import by_name, places, report_of, run

TASKS = """
import asyncio
s = get_profiler().section("bound")
enable_profiling()
with profile_section("work"): pass      # known before there is a loop
with s: pass

async def task(seconds):
    with profile_section("work"):
        await asyncio.sleep(seconds)
        with s:
            await asyncio.sleep(seconds)
            with profile_section("leaf"):
                await asyncio.sleep(seconds)

async def main():
    with profile_section("main"):
        await asyncio.gather(*(task(0.02 + 0.002 * i) for i in range(5)))
    with s: pass

with profile_section("loop"):
    asyncio.run(main())
with profile_section("after"): pass
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_tasks_that_interleave_keep_their_own_durations_and_places(tmp_path: Path, version: str) -> None:
    report = report_of(TASKS, tmp_path, interpreter(version))
    tree = {path: place["calls"] for path, place in places(report).items()}
    assert tree == {
        "work": 1,
        "bound": 1,
        "loop": 1,
        "loop/main": 1,
        "loop/main/work": 5,
        "loop/main/work/bound": 5,
        "loop/main/work/bound/leaf": 5,
        "loop/bound": 1,
        "after": 1,
    }
    found = by_name(report)
    # Each task slept three times as long as its leaf: none was timed from another's beginning.
    assert found["leaf"]["min_s"] >= 0.019
    assert found["leaf"]["total_s"] >= 5 * 0.022
    # Sleeps that a busy machine draws out are drawn out in both.
    assert found["leaf"]["total_s"] < 0.6 * found["work"]["total_s"]
    assert found["work"]["max_s"] >= 0.083
    # Five tasks side by side take more than what waits for all of them, which has no time of its own then.
    assert places(report)["loop/main/work"]["total_s"] > places(report)["loop/main"]["total_s"]
    assert found["main"]["self_s"] == 0
    assert report["open"] == []


def test_an_asynchronous_generator_that_the_loop_ends_is_counted_once(tmp_path: Path) -> None:
    code = """
    import asyncio
    enable_profiling()
    s = get_profiler().section("bound")
    async def items():
        with s, profile_section("item"):
            yield 1
            yield 2
    async def main():
        async for _ in items():
            break
        with s: pass
    asyncio.run(main())
    with s: pass
    """
    report = report_of(code, tmp_path)
    assert {n: x["calls"] for n, x in by_name(report).items()} == {"bound": 3, "item": 1}
    assert report["open"] == []


def test_a_thread_beside_a_loop_and_a_loop_in_a_thread(tmp_path: Path) -> None:
    code = """
    import asyncio, threading
    enable_profiling()
    async def main():
        with profile_section("asynchronous"):
            await asyncio.get_running_loop().run_in_executor(None, work)
    def work():
        with profile_section("in_thread"): pass
    loops = threading.Thread(target=lambda: asyncio.run(main()))
    with profile_section("outer"):
        loops.start()
        for _ in range(1000):
            with profile_section("synchronous"): pass
        loops.join()
    """
    tree = {path: place["calls"] for path, place in places(report_of(code, tmp_path)).items()}
    assert tree == {"outer": 1, "outer/synchronous": 1000, "asynchronous": 1, "in_thread": 1}


def test_sync_is_called_at_both_ends(tmp_path: Path) -> None:
    code = """
    import time
    calls = []
    def sync():
        calls.append(1); time.sleep(0.001)
    enable_profiling(sync=sync)
    s = get_profiler().section("bound")
    for _ in range(5):
        with profile_section("x"): pass
        with s: pass
    assert len(calls) == 20, calls
    assert get_profiler().report()["sync"] is True
    enable_profiling(sync=False)
    with s: pass
    assert len(calls) == 20
    def broken(): raise RuntimeError("CUDA error: an illegal memory access was encountered")
    enable_profiling(sync=broken)
    try:
        with profile_section("y"): pass
    except RuntimeError as e:
        print(e)
    enable_profiling(sync=False)
    with profile_section("z"): pass
    """
    done = run(code + "\n    import json; print(json.dumps(get_profiler().report()))", tmp_path)
    assert "illegal memory access" in done.out
    found = by_name(done.json)
    # What waits for the device at the end belongs to the section, what waits before it does not.
    assert 0.001 <= found["x"]["mean_s"] < 0.002 * 5
    assert (found["bound"]["calls"], found["z"]["calls"]) == (6, 1)
    assert set(places(done.json)) == {"x", "bound", "z"}


def test_one_tracked_handle_serves_entries_inside_each_other(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    p = profile("tracked", track_memory=True)
    with p:
        with p:
            held = bytearray(60 << 20)
    """
    report = report_of(code, tmp_path)
    assert places(report)["tracked"]["calls"] == 2
    assert 55 <= by_name(report)["tracked"]["mem_peak_mb"] <= 80
