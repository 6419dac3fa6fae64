"""The launch queue against a count of what is launched and not yet started."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces
from tests.support.traces import device, host, launched

from gpudebug.core.trace import launches, summarise

pairs = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 40)), min_size=1, max_size=30)


@given(pairs, st.sampled_from([3, 50_000]))
def test_depth_is_what_is_launched_and_not_started(found: list[tuple[int, int]], block: int) -> None:
    each = [launched("k", a, a + after, 1, i) for i, (a, after) in enumerate(found, start=1)]
    events = [event for pair in each for event in pair]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launches, "_BLOCK", block)
        queue = summarise([traces.text(events)]).as_dict()["devices"][0]["queue"]
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
    found = summarise([traces.text(events)]).as_dict()["devices"][0]["launches"]
    assert found == {"count": 3, "mean_call_us": 2.0, "mean_delay_us": 4.0, "p50_delay_us": 4.0}


def test_what_was_launched_outside_the_trace_has_no_queue() -> None:
    events = [
        device("a", 0, 5, correlation=7),
        device("b", 9, 5),
        host("cuda_runtime", "cudaLaunchKernel", 3, 1, correlation=0),
    ]
    one = summarise([traces.text(events)]).as_dict()["devices"][0]
    assert one["queue"] is None
    assert one["launches"] is None
    assert one["streams"][0]["queue_max"] is None


def test_the_streams_changes() -> None:
    events = [*launched("a", 0, 10, 5, 1), *launched("b", 1, 16, 5, 2)]
    [stream] = summarise([traces.text(events)]).as_dict()["devices"][0]["streams"]
    # 1 and 2 behind the launches, 1 and 0 behind the starts.
    assert stream["queue_max"] == 2
    assert stream["queue_mean_of_changes"] == 1.0
