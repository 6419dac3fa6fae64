"""Handles: kept, shared, entered again, off and on, in an ExitStack, in generators."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.profiled import by_name, places, report_of, run


def calls(report: object) -> dict[str, int]:
    return {name: section["calls"] for name, section in by_name(report).items()}


SHARED = """
import threading, time
s = get_profiler().section("shared")
with s: pass                       # off
enable_profiling()
h = profile_section("kept")        # as some will do
def work():
    for _ in range(300):
        with s:
            with h:
                with s: pass
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
work()
for t in threads: t.join()
with profile_section("elsewhere"):
    with s: pass
disable()
with s, h: pass
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_handle_is_shared_by_threads_places_and_entries(tmp_path: Path, version: str) -> None:
    report = report_of("import sys; sys.setswitchinterval(1e-5)\n" + SHARED, tmp_path, interpreter(version))
    assert calls(report) == {"shared": 3001, "kept": 1500, "elsewhere": 1}
    tree = {path: place["calls"] for path, place in places(report).items()}
    assert tree == {"shared": 3000, "shared/kept": 1500, "elsewhere": 1, "elsewhere/shared": 1}
    assert report["open"] == []
    # No call of a thread was timed from another one's beginning.
    assert by_name(report)["shared"]["max_s"] < report["wall_s"]


def test_a_handle_works_in_an_exit_stack(tmp_path: Path) -> None:
    code = """
    from contextlib import ExitStack
    s = get_profiler().section("bound")
    with ExitStack() as stack:
        stack.enter_context(s); stack.enter_context(profile_section("x"))
    enable_profiling()
    try:
        with ExitStack() as stack:
            stack.enter_context(s); stack.enter_context(profile_section("x")); raise KeyError
    except KeyError:
        pass
    """
    report = report_of(code, tmp_path)
    assert set(places(report)) == {"bound", "bound/x"}
    assert {s["errors"] for s in report["sections"]} == {1}


def test_a_handle_is_copied_and_pickled_with_what_holds_it(tmp_path: Path) -> None:
    code = """
    import copy, pickle
    class Model:
        def __init__(self): self.section = get_profiler().section("forward")
    enable_profiling()
    for model in (Model(), copy.deepcopy(Model()), pickle.loads(pickle.dumps(Model()))):
        with model.section: pass
    """
    assert calls(report_of(code, tmp_path)) == {"forward": 3}


def test_profiling_switched_inside_a_section_pairs_what_it_began(tmp_path: Path) -> None:
    code = """
    s = get_profiler().section("s")
    with s, profile_section("x"):
        enable_profiling()          # neither was begun
    with s, profile_section("y"):
        disable()                   # both were
    with s, profile_section("z"): pass
    enable_profiling()
    s.__exit__(None, None, None)    # never entered: nothing to count
    with s: pass
    """
    report = report_of(code, tmp_path)
    assert calls(report) == {"s": 2, "y": 1}
    assert by_name(report)["s"]["max_s"] < report["wall_s"]


def test_sections_that_generators_hold_open_end_in_any_order(tmp_path: Path) -> None:
    code = """
    import time
    enable_profiling()
    def loader(name):
        for i in range(3):
            with profile_section(name):
                yield i
    for a, b in zip(loader("one"), loader("two")):
        with profile_section("train"): time.sleep(0.001)
    left = loader("three"); next(left); left.close()
    with profile_section("after"): pass
    """
    report = report_of(code, tmp_path)
    assert calls(report) == {"one": 3, "two": 3, "train": 3, "three": 1, "after": 1}
    assert "after" in places(report)
    assert report["open"] == []
    assert all(s["errors"] == 0 for s in report["sections"])
    assert by_name(report)["one"]["total_s"] >= 0.003


def test_what_is_open_is_named(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    profile_section("outer").__enter__(); profile_section("inner").__enter__()
    with profile_section("closed"): pass
    """
    report = report_of(code, tmp_path)
    assert report["open"] == ["outer", "inner"]
    assert set(places(report)) == {"outer", "outer/inner", "outer/inner/closed"}
    assert calls(report) == {"closed": 1}
    assert "Open: outer, inner" in run(code + "\n    print_profiling_summary()", tmp_path).out


def test_a_finalizer_and_a_signal_handler_may_time_sections(tmp_path: Path) -> None:
    code = """
    import gc, signal
    enable_profiling()
    class Cycle:
        def __init__(self): self.me = self
        def __del__(self):
            with profile_section("finalizer"): pass
    def handler(*_):
        for _ in range(300):
            with profile_section("signal"): pass
        # Wound up anew by each alarm: on a slow machine one of its own would come before the handler ends.
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    gc.set_threshold(5)
    for _ in range(20000):
        Cycle()
        with profile_section("loop"): pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    gc.collect()
    """
    found = calls(report_of(code, tmp_path))
    assert found["finalizer"] == found["loop"] == 20000
    assert found["signal"] % 300 == 0
