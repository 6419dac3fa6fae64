"""Trees of sections: bounds, threads that come and go, folding, random programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.profiled import by_name, places, report_of

from gpudebug.training.profiling import report as reports
from gpudebug.training.profiling.tree import Figures, Node, Roots, edges, larger, registry


@pytest.mark.slow
def test_a_million_names_are_capped_and_it_is_said(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    with profile_section("outer"):
        for i in range(1_000_000):
            with profile_section(f"name-{i}"): pass
        with profile_section("known-late"): pass
    with profile_section("name-3"): pass
    # Not ru_maxrss: that is also what forked this process.
    peak_kb = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    assert peak_kb < 100 * 1024, peak_kb
    """
    report = report_of(code, tmp_path)
    found = by_name(report)
    assert len(found) == 10_001
    assert found["(other)"]["calls"] == 1_000_001 - 9_999
    assert sum(s["calls"] for s in found.values()) == 1_000_003
    assert report["capped"] == pytest.approx(990_002, rel=0.02)
    assert any("more than 10000 names" in note for note in report["notes"])
    assert {path for path in places(report) if "/" not in path} == {"outer", "name-3"}


def test_places_are_capped_where_names_are_few(tmp_path: Path) -> None:
    code = """
    import threading
    enable_profiling()
    def work():
        for i in range(300):
            with profile_section(f"outer-{i}"):
                for j in range(100):
                    with profile_section(f"inner-{j}"): pass
    work()
    """
    report = report_of(code, tmp_path)
    assert sum(s["calls"] for s in report["sections"]) == 300 * 101
    assert len(places(report)) <= 20_001
    assert report["open"] == []


def test_threads_that_ended_keep_their_figures_and_leave_their_place(tmp_path: Path) -> None:
    code = """
    import threading
    from gpudebug.training.profiling.tree import registry
    enable_profiling()
    def work():
        with profile_section("outer"):
            with profile_section("inner"): pass
    for _ in range(200):
        thread = threading.Thread(target=work); thread.start(); thread.join()
    work()
    assert len(registry.roots) <= 20, len(registry.roots)  # the system chooses who gets whose number
    """
    report = report_of(code, tmp_path)
    assert {path: p["calls"] for path, p in places(report).items()} == {"outer": 201, "outer/inner": 201}


def test_what_a_thread_left_open_is_not_open_for_the_next(tmp_path: Path) -> None:
    code = """
    import threading
    enable_profiling()
    def leave_open(): profile_section("left").__enter__()
    def work():
        with profile_section("left"):
            with profile_section("inner"): pass
    for target in (leave_open, work, work):
        thread = threading.Thread(target=target); thread.start(); thread.join()
    """
    report = report_of(code, tmp_path)
    assert {path: p["calls"] for path, p in places(report).items()} == {"left": 2, "left/inner": 2}
    assert by_name(report)["left"]["max_s"] < 1


def test_a_report_may_be_asked_for_while_threads_go_on(tmp_path: Path) -> None:
    code = """
    import sys, threading
    sys.setswitchinterval(1e-5)
    enable_profiling()
    going = True
    counts = []
    def work():
        n = 0
        while going:
            with profile_section("x"): n += 1
        counts.append(n)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    seen = [get_profiler().report()["sections"] for _ in range(100)]
    going = False
    for t in threads: t.join()
    last = get_profiler().report()["sections"][0]
    assert last["calls"] == sum(counts), (last, counts)
    numbers = [s[0]["calls"] for s in seen if s]
    assert numbers == sorted(numbers) and numbers[-1] <= last["calls"]
    """
    report_of(code, tmp_path)


PROGRAMS = st.recursive(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**9)), max_size=3),
    lambda inner: st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**9), inner), max_size=3),
    max_leaves=25,
)


def grown(program: list[tuple[str, int] | tuple[str, int, list[object]]], under: Node) -> int:
    """Enter `program` below a node with durations as given on top of what the inner sections take."""
    whole = 0
    for name, own, *inner in program:
        node = under.children[name]
        duration = own + (grown(inner[0], node) if inner else 0)  # type: ignore[arg-type]
        node.pending.append(duration)
        whole += duration
    return whole


def recurses(node: Node, around: frozenset[str] = frozenset()) -> bool:
    """Whether a name stands inside itself, at whatever remove."""
    inner = list(node.children.values())
    return any(n.name in around or recurses(n, around | {n.name}) for n in inner)


@settings(deadline=None)
@given(PROGRAMS)
def test_totals_of_any_program(program: list[tuple[str, int] | tuple[str, int, list[object]]]) -> None:
    before, top = registry.roots, Node("", None)
    registry.roots = Roots({1: top})
    try:
        whole = grown(program, top)
        by, root, _ = reports.gather()
    finally:
        registry.roots = before
        registry.nodes = 0
    # Own times add up to all that was measured, whatever recursion there was.
    assert sum(sums.own for sums in by.values()) == whole
    assert sum(place.total for place in root.children.values()) == whole
    flat: dict[str, int] = {}
    waiting = list(root.children.values())
    while waiting:
        place = waiting.pop()
        flat[place.name] = flat.get(place.name, 0) + place.calls
        # Where a name stands inside itself, what is in the inner one is shown in the outer one too.
        inside = sum(child.total for child in place.children.values())
        assert inside <= place.total or recurses(top)
        waiting.extend(place.children.values())
    assert {name: sums.figures.calls for name, sums in by.items()} == flat
    assert all(sums.own <= sums.total <= whole for sums in by.values())


DURATIONS = st.lists(st.integers(0, 10**13), min_size=1, max_size=300)


def taken(*batches: list[int]) -> Figures:
    figures = Figures()
    for batch in batches:
        figures.take(list(batch))
    return figures


@settings(deadline=None)
@given(DURATIONS)
def test_sums_and_extremes_are_exact(durations: list[int]) -> None:
    figures = taken(durations)
    assert figures.calls == len(durations) == sum(figures.buckets.values())
    assert (figures.total, figures.low, figures.high) == (sum(durations), min(durations), max(durations))


@settings(deadline=None)
@given(DURATIONS, st.floats(0, 1))
def test_a_quantile_is_off_by_less_than_a_bucket(durations: list[int], share: float) -> None:
    exact = sorted(durations)[int(share * (len(durations) - 1))]
    found = taken(durations).quantile(share)
    # The exact rank lies between two calls: the bucket is that of the lower one.
    assert exact - max(exact / 16, 1) <= found <= exact + max(exact / 16, 1)


@settings(deadline=None)
@given(DURATIONS, DURATIONS)
def test_the_order_in_which_calls_are_put_together_does_not_matter(one: list[int], other: list[int]) -> None:
    together = taken(one + other)
    apart = taken(one, other)
    added = taken(one)
    added.add(taken(other))
    for figures in (apart, added):
        for key in ("calls", "total", "low", "high", "buckets"):
            assert getattr(figures, key) == getattr(together, key)


@settings(deadline=None)
@given(st.integers(0, 1 << 60))
def test_a_duration_lies_in_its_bucket(duration: int) -> None:
    (key,) = taken([duration]).buckets
    start, width = edges(key)
    assert start <= duration < start + width
    assert width <= max(duration / 16, 1)


def test_buckets_follow_each_other_without_a_gap() -> None:
    for key in range(800):
        start, width = edges(key)
        assert edges(key + 1)[0] == start + width


def test_without_calls_there_is_no_quantile() -> None:
    with pytest.raises(ValueError, match="no calls"):
        Figures().quantile(0.5)
    figures = taken([])
    assert (figures.calls, figures.total, figures.buckets) == (0, 0, {})


def test_a_peak_outlives_what_is_cleared() -> None:
    figures = taken([5])
    figures.mem_peak, figures.errors = 7, 2
    figures.clear()
    assert (figures.calls, figures.errors, figures.mem_peak) == (0, 0, 7)


@pytest.mark.parametrize(
    ("one", "other", "expected"), [(None, None, None), (1, None, 1), (None, 2, 2), (3, 2, 3), (0, None, 0)]
)
def test_the_larger_of_two_where_either_may_be_unknown(
    one: int | None, other: int | None, expected: int | None
) -> None:
    assert larger(one, other) == expected
