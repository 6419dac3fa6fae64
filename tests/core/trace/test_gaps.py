"""What the host did while the device idled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces
from tests.support.traces import Event, device, host, launched

from gpudebug.core.trace import gaps
from gpudebug.core.trace.devices import KERNEL_WAIT_US
from gpudebug.core.trace.gaps import CAUSES, HOST
from gpudebug.core.trace.summary import summarise

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SPANS = {
    "data_loading": ("user_annotation", LOADER),
    "synchronising": ("cuda_runtime", "cudaStreamSynchronize"),
    "allocation": ("cuda_runtime", "cudaMalloc"),
    "copy_call": ("cuda_runtime", "cudaMemcpyAsync"),
    "operator": ("cpu_op", "aten::add"),
    "python": ("user_annotation", "my forward"),
}


def idle(*events: Event) -> dict[str, Any]:
    return summarise([traces.text(events)]).answer["gaps"]


def seconds(found: dict[str, Any]) -> dict[str, float]:
    return {c["cause"]: round(c["seconds"] * 1e6, 3) for c in found["by_cause"]}


@pytest.mark.parametrize("cause", [c for c in HOST if c != "synchronising"])
def test_a_gap_is_what_the_host_did_in_it(cause: str) -> None:
    category, name = SPANS[cause]
    found = idle(
        *launched("first", 0, 10, 10, 1), host(category, name, 30, 60), *launched("second", 100, 105, 10, 2)
    )
    # 20 to 30 and 90 to 100 nothing is known, from 100 on the launch.
    assert seconds(found) == {cause: 60, "unknown": 20, "launch": 5}
    assert found["by_cause"][0]["count"] == found["count"] == 1
    assert found["by_cause"][0]["share"] == pytest.approx(60 / 85)
    assert [n["name"] for n in found["by_cause"][0]["names"]] == [name]


def test_a_device_that_runs_dry_under_a_synchronising_call_idles_because_of_it() -> None:
    found = idle(
        *launched("first", 0, 10, 10, 1),
        host("cuda_runtime", "cudaStreamSynchronize", 5, 18),  # returns 3 us behind the kernel
        host("user_annotation", LOADER, 30, 20),
        host("cpu_op", "aten::add", 60, 30),
        *launched("second", 95, 100, 10, 2),
    )
    # The loader is slow whoever waited before; all else would have been hidden behind a queue.
    assert seconds(found) == {"synchronising": 60, "data_loading": 20}
    assert found["by_cause"][0]["names"][0]["name"] == "cudaStreamSynchronize"


def test_work_that_was_queued_before_the_gap_is_not_the_hosts() -> None:
    found = idle(
        *launched("first", 0, 10, 10, 1),
        *launched("second", 5, 60, 5, 2),
        host("cpu_op", "aten::add", 20, 40),
    )
    assert seconds(found) == {"queued": 40}
    assert found["by_cause"][0]["names"] == [{"name": "second", "seconds": 40e-6}]


def test_a_long_launch_call_is_a_launch_from_its_beginning() -> None:
    call = host("cuda_runtime", "cudaLaunchKernel", 15, 45, correlation=2)
    found = idle(*launched("first", 0, 10, 10, 1), call, device("second", 65, 5, correlation=2))
    assert seconds(found) == {"launch": 40, "queued": 5}


def test_a_kernel_that_starts_long_after_its_launch_is_held_back_on_the_device() -> None:
    found = idle(*launched("first", 0, 10, 10, 1), *launched("second", 30, 463_030, 10, 2))
    # The call takes 2 us, and 30 more are a launch's own.
    assert seconds(found) == {"unknown": 10, "launch": 32, "held_back": 462_968}
    assert found["by_cause"][0]["names"][0]["name"] == "second"
    assert found["longest"][0]["cause"] == "held_back"
    soon = idle(*launched("first", 0, 10, 10, 1), *launched("second", 30, 62, 10, 2))
    assert seconds(soon) == {"unknown": 10, "launch": 32}


def test_a_synchronising_call_does_not_explain_what_is_held_back() -> None:
    sync = host("cuda_runtime", "cudaStreamSynchronize", 5, 16)
    found = idle(*launched("first", 0, 10, 10, 1), sync, *launched("second", 30, 1030, 10, 2))
    assert seconds(found) == {"synchronising": 42, "held_back": 968}


def test_steps_tell_python_from_nothing() -> None:
    events = [*launched("first", 0, 10, 10, 1), *launched("second", 100, 100, 10, 2)]
    step = host("user_annotation", "ProfilerStep#3", 0, 50)
    assert seconds(idle(*events)) == {"unknown": 80}
    assert seconds(idle(step, *events)) == {"unknown": 50, "python": 30}


def test_classes_of_size() -> None:
    found = idle(device("a", 0, 10), device("b", 15, 5), device("c", 120, 5), device("d", 5125, 5))
    sizes = {s["to_us"]: (s["count"], round(s["seconds"] * 1e6)) for s in found["by_size"] if s["count"]}
    assert sizes == {10.0: (1, 5), 1000.0: (1, 100), 10000.0: (1, 5000)}
    assert [round(g["seconds"] * 1e6) for g in found["longest"]] == [5000, 100, 5]
    assert found["longest"][0]["start_s"] == pytest.approx(125e-6)
    assert found["longest"][0]["ended_by"] == "d"


host_spans = st.lists(
    st.tuples(st.sampled_from(list(HOST)), st.integers(0, 150), st.integers(1, 30)), max_size=12
)
kernels = st.lists(
    st.tuples(st.integers(0, 150), st.integers(1, 20), st.none() | st.integers(0, 60)), min_size=2, max_size=8
)


@given(host_spans, kernels, st.sampled_from([2, 20_000]))
def test_causes_are_those_of_a_timeline(
    spans: list[tuple[str, int, int]], work: list[tuple[int, int, int | None]], block: int
) -> None:
    """Each idle microsecond by itself: queued, launching, or the first class that holds it."""
    events = [host(*SPANS[c], s, d, tid=i) for i, (c, s, d) in enumerate(spans)]
    for number, (start, length, before) in enumerate(work, start=1):
        if before is None:
            events.append(device("k", start, length))
        else:
            events += launched("k", start - before, start, length, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "_BLOCK", block)
        found = idle(*events)
    assert seconds(found) == timeline(spans, work)
    assert found["total_s"] == pytest.approx(sum(c["seconds"] for c in found["by_cause"]), abs=1e-9)
    assert sum(c["count"] for c in found["by_cause"]) == found["count"]
    for row in found["by_cause"]:
        if row["cause"] in ("data_loading", "allocation", "copy_call", "launch", "queued", "held_back"):
            # What names tell of concurrent spans may exceed their class, never fall short of it.
            named = sum(n["seconds"] for n in row["names"])
            assert named >= row["seconds"] * (1 - 1e-4) - 1e-9


def timeline(spans: list[tuple[str, int, int]], work: list[tuple[int, int, int | None]]) -> dict[str, float]:
    busy = {t for s, d, _ in work for t in range(s, s + d)}
    first, last = min(busy), max(busy)
    told: dict[str, float] = dict.fromkeys(CAUSES, 0)
    idle_now = sorted(set(range(first, last)) - busy)
    for t in idle_now:
        begin = next(x for x in range(t, first - 1, -1) if x - 1 in busy)
        end = next(x for x in range(t, last + 1) if x in busy)
        # Of several that begin together the first in the file ended the gap.
        before = next(b for s, _, b in work if s == end)
        asked = None if before is None else end - before
        told[cause(t, begin, asked, spans)] += 1
    return {name: n for name, n in told.items() if n}


def cause(t: int, begin: int, asked: int | None, spans: list[tuple[str, int, int]]) -> str:
    if asked is not None and asked <= begin:
        return "launch" if t < asked + 2 else "queued"
    dry = any(c == "synchronising" and s <= begin <= s + d + 5 for c, s, d in spans)
    if asked is not None and t >= asked + 2 + KERNEL_WAIT_US:
        return "held_back"
    if asked is not None and t >= asked:
        found = "launch"
    else:
        held = {c for c, s, d in spans if s <= t < s + d}
        found = next((c for c in HOST if c in held), "unknown")
    return "synchronising" if dry and found in ("operator", "python", "unknown", "launch") else found
