"""What one pass over the events keeps."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces
from tests.support.traces import device, host, launched

from gpudebug.core.trace import arrays, spans
from gpudebug.core.trace.arrays import Links, Recording, Track, matched
from gpudebug.core.trace.reader import TraceReader

correlations = st.lists(st.one_of(st.integers(0, 12), st.integers(2**32 - 3, 2**32 - 1)), max_size=25)


@given(correlations, correlations, st.sampled_from([1, 4, 50_000]))
def test_the_first_launch_with_the_correlation(wanted: list[int], launched: list[int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "_BLOCK", block)
        found = matched(array("I", wanted), array("I", launched))
    assert found.tolist() == [launched.index(c) if c and c in launched else -1 for c in wanted]


ids = st.integers(1, 20)


@given(st.lists(ids), st.lists(st.integers(0, 25)))
def test_operators_are_found_by_their_id_in_any_order(known: list[int], wanted: list[int]) -> None:
    of = Links()
    for name, external in enumerate(known, start=1):
        of.add(external, name)
    of.finish()
    found = of.names(np.array(wanted, np.uint32))
    # The first of several with one id; none for 0.
    assert found.tolist() == [known.index(i) + 1 if i in known else 0 for i in wanted]


def test_links_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LIMIT", 2)
    of = Links()
    for number in (5, 6, 7):
        of.add(number, number)
    of.finish()
    assert of.names(np.array([7, 6, 5])).tolist() == [0, 6, 5]


def recorded(*events: dict[str, Any]) -> Recording:
    recording = Recording()
    for batch in TraceReader([traces.text(events)]).batches():
        recording.feed(batch)
    recording.finish()
    return recording


def test_only_spans_of_known_categories_count() -> None:
    recording = recorded(
        device("k", 0, 1),
        {"ph": "i", "name": "instant", "ts": 5, "cat": "cpu_op"},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "s", "name": "ac2g", "cat": "ac2g", "ts": 1, "id": 1},
        {"ph": "X", "name": "PyTorch Profiler (0)", "cat": "Trace", "ts": 0, "dur": 1e9, "pid": "Spans"},
        {"ph": "X", "name": "k", "cat": "gpu_user_annotation", "ts": 0, "dur": 9, "pid": 0, "tid": 7},
        device("negative", 5, -1),
        device("endless", 5, 1e300),
    )
    assert recording.events == 1
    assert recording.impossible == 2
    assert (recording.first, recording.last) == (0, 1)


def test_times_count_from_the_first_event_without_loss() -> None:
    recording = recorded(device("k", 4411256817600.125, 1.5), device("k", 4411256817700.25, 1.5))
    assert list(recording.start) == [0.0, 100.125]


def test_device_and_stream_are_the_arguments_else_process_and_thread() -> None:
    recording = recorded(
        device("a", 0, 1, number=3, stream=9),
        {"ph": "X", "name": "b", "cat": "Kernel", "ts": 5, "dur": 1, "pid": 2, "tid": 17},
        {"ph": "X", "name": "c", "cat": "kernel", "ts": 9, "dur": 1, "args": {"stream": "0x0", "device": 1}},
        {"ph": "X", "name": "d", "cat": "kernel", "ts": 9, "dur": 1},
    )
    assert recording.tracks == [Track(3, 9), Track(2, 17), Track(1, "0x0"), Track("unknown", "unknown")]
    assert [number for number, _ in recording.of_devices()] == [1, 2, 3, "unknown"]


def test_a_step_that_several_threads_name_is_one() -> None:
    recording = recorded(
        host("user_annotation", "ProfilerStep#4", 10, 10),
        host("user_annotation", "ProfilerStep#4", 5, 12, tid=9),
    )
    assert {n: (e - s) for n, (s, e) in recording.steps.items()} == {4: 15}


def test_an_operators_id_that_is_the_correlation_is_none() -> None:
    """As Kineto of 2022 and 2023 wrote it."""
    recording = recorded(
        *(host("cpu_op", f"op{i}", i, 1, **{"External id": i}) for i in (77, 78)),
        device("a", 0, 1, **{"External id": 77, "correlation": 77}),
        device("b", 2, 3, **{"External id": 78, "correlation": 80}),
    )
    assert recording.device_us is not None
    assert dict(zip(recording.names.texts, recording.device_us, strict=True)) == {
        "(other names)": 0,
        "op77": 0,
        "op78": 3,
        "a": 0,
        "b": 0,
    }
    assert recorded(device("a", 0, 1)).device_us is None


def test_events_out_of_order_come_by_start() -> None:
    recording = recorded(device("b", 50, 1), device("c", 70, 1, number=1), device("a", 10, 1))
    assert [number for number, _ in recording.of_devices()] == [0, 1]
    texts = [recording.names.texts[n] for n in recording.name]
    assert [texts[where] for _, where in recording.of_devices()] == [["a", "b"], ["c"]]
    assert list(recording.start) == [-40.0, 0.0, 20.0]


def test_an_event_keeps_its_launch_wherever_it_is_put() -> None:
    recording = recorded(
        *launched("b", 40, 50, 1, 8), *launched("a", 5, 10, 1, 9), device("c", 70, 1, number=1, correlation=7)
    )
    assert [recording.names.texts[n] for n in recording.name] == ["a", "b", "c"]
    asked = [None if i < 0 else recording.launch_start[i] + (recording.base or 0.0) for i in recording.launch]
    assert asked == [5.0, 40.0, None]
