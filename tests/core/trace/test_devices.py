"""Busy, idle and gaps of a device against a timeline that is counted microsecond by microsecond."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces
from tests.support.traces import device, host, launched

from gpudebug.core.trace import devices as trace_devices
from gpudebug.core.trace import spans as trace_spans
from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.devices import TraceDevice, devices
from gpudebug.core.trace.reader import TraceReader
from gpudebug.core.trace.summary import summarise

pairs = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 40)), min_size=1, max_size=30)


@given(pairs, st.sampled_from([3, 50_000]))
def test_depth_is_what_is_launched_and_not_started(found: list[tuple[int, int]], block: int) -> None:
    each = [launched("k", a, a + after, 1, i) for i, (a, after) in enumerate(found, start=1)]
    events = [event for pair in each for event in pair]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_devices, "_BLOCK", block)
        queue = summarise([traces.text(events)]).answer["devices"][0]["queue"]
    first, last = min(a for a, _ in found), max(a + d for a, d in found)
    if first == last:
        assert queue is None
        return
    depth = [sum(a <= t < a + d for a, d in found) for t in range(first, last)]
    assert queue["mean"] == pytest.approx(sum(depth) / len(depth), abs=1e-5)
    assert queue["share_empty"] == pytest.approx(depth.count(0) / len(depth), abs=1e-5)
    assert queue["share_low"] == pytest.approx(sum(d <= 2 for d in depth) / len(depth), abs=1e-5)
    middle = sorted(depth)
    assert middle[(len(depth) - 1) // 2] <= queue["p50"] <= middle[len(depth) // 2]
    assert queue["max"] == max(
        sum(a <= now for a, _ in found) - sum(a + d < now for a, d in found) for now, _ in found
    )


def test_delays_count_from_the_end_of_the_call() -> None:
    events = [*launched("a", 0, 10, 5, 1), *launched("b", 20, 21, 5, 2), *launched("c", 40, 46, 5, 3)]
    found = summarise([traces.text(events)]).answer["devices"][0]["launches"]
    assert found == {"count": 3, "mean_call_us": 2.0, "mean_delay_us": 4.0, "p50_delay_us": 4.0}


def test_what_was_launched_outside_the_trace_has_no_queue() -> None:
    events = [
        device("a", 0, 5, correlation=7),
        device("b", 9, 5),
        host("cuda_runtime", "cudaLaunchKernel", 3, 1, correlation=0),
    ]
    one = summarise([traces.text(events)]).answer["devices"][0]
    assert one["queue"] is None
    assert one["launches"] is None
    assert one["streams"][0]["queue_max"] is None


def test_the_streams_changes() -> None:
    events = [*launched("a", 0, 10, 5, 1), *launched("b", 1, 16, 5, 2)]
    [stream] = summarise([traces.text(events)]).answer["devices"][0]["streams"]
    # 1 and 2 behind the launches, 1 and 0 behind the starts.
    assert stream["queue_max"] == 2
    assert stream["queue_mean_of_changes"] == 1.0


COPY = "Memcpy HtoD (Pinned -> Device)"
NAMES = {"gemm": "compute", "ncclKernel_AllReduce": "communication", COPY: "memory"}

# Events that are looked at together: nothing depends on it.
BLOCK = st.sampled_from([1, 3, 50_000])
works = st.lists(
    st.tuples(st.sampled_from(list(NAMES)), st.integers(0, 60), st.integers(1, 12), st.integers(0, 2)),
    min_size=1,
    max_size=20,
)


def recorded(events: Iterable[dict[str, Any]]) -> Recording:
    recording = Recording()
    for batch in TraceReader([traces.text(events)]).batches():
        recording.feed(batch)
    recording.finish()
    return recording


def found(recording: Recording) -> list[TraceDevice]:
    return devices(recording)


def category(name: str) -> str:
    return "gpu_memcpy" if "Memcpy" in name else "kernel"


def counted(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {t for s, d in spans for t in range(s, s + d)}


@given(works, BLOCK)
def test_times_are_those_of_the_timeline(spans: list[tuple[str, int, int, int]], block: int) -> None:
    events = [device(n, s, d, category(n), stream=t) for n, s, d, t in spans]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_spans, "_BLOCK", block)
        one = summarise([traces.text(events)]).answer["devices"][0]
    busy = counted((s, d) for _, s, d, _ in spans)
    span = max(busy) + 1 - min(busy)
    kinds = {k: counted((s, d) for n, s, d, _ in spans if NAMES[n] == k) for k in NAMES.values()}
    near = lambda a, b: abs(a * 1e6 - b) < 1e-3  # noqa: E731
    assert near(one["span_s"], span)
    assert near(one["busy_s"], len(busy))
    assert near(one["idle_s"], span - len(busy))
    assert abs(one["busy_share"] - len(busy) / span) < 1e-6
    for kind, times in kinds.items():
        assert near(one[f"{kind}_s"], len(times))
    assert near(one["communication_overlapped_s"], len(kinds["communication"] & kinds["compute"]))


@given(works, BLOCK)
def test_gaps_are_where_nothing_runs(spans: list[tuple[str, int, int, int]], block: int) -> None:
    recording = recorded(device(n, s, d, category(n), stream=t) for n, s, d, t in spans)
    [one] = found(recording)
    base = recording.base or 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_spans, "_BLOCK", block)
        gaps = list(one.gaps())
    spans_of = [(s, e) for gap in gaps for s, e in zip(gap.start, gap.end, strict=True)]
    idle = counted((round(s + base), round(e - s)) for s, e in spans_of)
    busy = counted((s, d) for _, s, d, _ in spans)
    assert idle == set(range(min(busy), max(busy) + 1)) - busy
    assert all((one.start[gap.ended_by] == gap.end).all() for gap in gaps)


def test_each_device_has_its_own_time() -> None:
    events = [device("a", 0, 10), device("b", 50, 10)]
    events += [device("c", 20, 40, number=1), device("d", 5, 5, number=1)]
    answer = summarise([traces.text(events)]).answer
    assert [(d["device"], d["busy_s"], d["idle_s"]) for d in answer["devices"]] == [
        (0, 20e-6, 40e-6),
        (1, 45e-6, 10e-6),
    ]
    assert abs(answer["busy_share"] - (20 / 60 + 45 / 55) / 2) < 1e-6


@pytest.mark.parametrize("block", [1, 3, 50_000])
def test_a_stream_waits_for_the_host_for_the_launch_or_for_something_else(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_spans, "_BLOCK", block)
    events = [
        *launched("a", 0, 10, 10, 1),
        *launched("b", 1, 25, 10, 2),  # asked for before, 5 us later: the launch's own cost
        *launched("c", 45, 60, 10, 3),  # asked for when the stream was idle: the host
        *launched("d", 50, 170, 10, 4),  # asked for before, 100 us later: something else
        device("e", 200, 10, correlation=99),  # its launch is not in the trace
        *launched("other stream", 0, 20, 100, 5, stream=20),
    ]
    streams = summarise([traces.text(events)]).answer["devices"][0]["streams"]
    waits = {s["stream"]: [s[f"{k}_wait_s"] for k in ("host", "kernel", "other")] for s in streams}
    assert waits == {20: [0, 0, 0], 7: [25e-6, 25e-6, 100e-6]}
    assert [s["events"] for s in streams] == [1, 5]


def test_without_the_last_step() -> None:
    step = "ProfilerStep#{}"
    events = [
        host("user_annotation", step.format(1), 0, 100),
        host("user_annotation", step.format(2), 100, 100),
        *launched("a", 5, 10, 50, 1),
        *launched("b", 95, 110, 20, 2),
        *launched("late", 150, 160, 40, 3),
        device("unknown", 300, 5),
    ]
    one = summarise([traces.text(events)]).answer["devices"][0]
    assert one["without_last_step"]["span_s"] == 120e-6
    assert one["without_last_step"]["busy_s"] == 70e-6
    assert summarise([traces.text(events[1:])]).answer["devices"][0]["without_last_step"] is None
