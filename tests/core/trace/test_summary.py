"""A trace as one answer."""

from __future__ import annotations

import gzip
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces
from tests.support.places import DATA
from tests.support.traces import device, host

from gpudebug.core.answers.analyze import TraceAnswer
from gpudebug.core.errors import GpudebugError
from gpudebug.core.trace.arrays import MOST_DEVICES
from gpudebug.core.trace.summary import NO_DEVICE, summarise
from gpudebug.terminal.trace import trace

RECORDED = DATA / "trace_cpu.json.gz"
EVENTS = traces.training(20)


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for v in value.values() for n in numbers(v)]
    if isinstance(value, list):
        return [n for v in value for n in numbers(v)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize(("shown", "reliable"), [(0, False), (30, False), (40, True)])
def test_replays_of_graphs_whose_kernels_are_missing_make_the_utilisation_unreliable(
    shown: int, reliable: bool
) -> None:
    events = [host("user_annotation", f"ProfilerStep#{n}", 100.0 * n, 100.0) for n in range(40)]
    for n in range(40):
        events.append(host("cuda_runtime", "cudaGraphLaunch", 100.0 * n, 5.0, correlation=n + 1))
        events += [device("k", 100.0 * n + 10, 50.0, correlation=n + 1)] if n < shown else []
    answer = summarise([traces.text(events)]).answer
    if reliable:
        assert (answer["reason"], answer["busy_share"]) == (None, pytest.approx(50 * 40 / 3950, rel=1e-3))
        return
    said = (
        f"what the trace shows is unreliable: of {40 - shown} of 40 replays of CUDA graphs no kernel is in it"
    )
    shares = [
        answer["busy_share"],
        answer["steps"]["busy_share"],
        *(d["busy_share"] for d in answer["devices"]),
    ]
    assert (answer["reason"], answer["gaps"], {*shares}) == (said, None, {None})
    assert said in trace(TraceAnswer(file="f", **answer))


def test_a_step_whose_work_is_missing_is_no_idle_one() -> None:
    events = []
    for n in range(4):
        events.append(host("user_annotation", f"ProfilerStep#{n}", 1000.0 * n, 1000.0))
        if n != 2:
            events += traces.launched("k", 1000.0 * n + 10, 1000.0 * n + 20, 500.0, n + 1)
        if n != 3:
            events.append(host("cuda_runtime", "cudaLaunchKernel", 1000.0 * n + 700, 2.0, correlation=90 + n))
    answer = summarise([traces.text(events)]).answer
    assert [row["busy_share"] for row in answer["steps"]["table"]] == [0.5, 0.5, None, 0.5]
    assert (answer["steps"]["unseen"], answer["steps"]["busy_share"]) == (1, 0.5)
    assert "steps that launched work of which nothing is in the trace: 1;" in answer["notes"][-1]


def test_the_time_of_a_trace_counts_from_its_base() -> None:
    header = {**traces.HEADER, "baseTimeNanoseconds": 1773065107 * 10**9}
    events = [device("k", 2_000_000.0, 5.0)]
    assert summarise([traces.text(events, header=header)]).answer["began"] == "2026-03-09 14:05:09"
    for base in (None, True, "x", 10**40):
        header["baseTimeNanoseconds"] = base
        assert summarise([traces.text(events, header=header)]).answer["began"] is None


def test_the_model_of_a_training_is_told_as_it_was_made() -> None:
    answer = summarise([traces.text(EVENTS)]).answer
    spans = [e for e in EVENTS if e["ph"] == "X"]
    of = lambda *names: [e for e in spans if e["cat"] in names]  # noqa: E731
    assert answer["kind"] == "trace"
    assert answer["events"] == len(spans)
    assert answer["device_events"] == len(of("kernel", "gpu_memcpy"))
    assert (answer["rank"], answer["world_size"]) == (0, 2)
    assert answer["devices"][0]["name"] == "Synthetic GPU"
    assert answer["steps"]["count"] == 20
    assert answer["kernels_per_step"] == len(of("kernel")) / 20
    loaders = [e["dur"] for e in spans if "DataLoader" in e["name"]]
    assert answer["host"]["data_loading"]["seconds"] == pytest.approx(sum(loaders) / 1e6)
    assert answer["gaps"]["by_cause"][0]["cause"] == "data_loading"
    # Kernels that follow each other leave no gap, though their times are rounded.
    assert 19 <= answer["gaps"]["by_cause"][0]["count"] <= 20
    assert answer["gaps"]["total_s"] == pytest.approx(answer["devices"][0]["idle_s"], rel=1e-5)
    reads = [e["dur"] for e in spans if e["name"] == "cudaStreamSynchronize"]
    assert answer["syncs"][0] == {
        "call": "cudaStreamSynchronize",
        "kind": "runtime",
        "count": 20,
        "seconds": pytest.approx(sum(reads) / 1e6),
        "stacks": [
            {
                "frames": ["aten::_local_scalar_dense", "aten::item"],
                "count": 20,
                "seconds": pytest.approx(sum(reads) / 1e6),
            }
        ],
    }
    assert answer["notes"] == []
    assert all(map(math.isfinite, numbers(answer)))


def test_the_order_of_the_events_changes_nothing() -> None:
    answer = summarise([traces.text(EVENTS)]).answer
    turned = summarise([traces.text(EVENTS[::-1])]).answer
    for key in ("devices", "gaps", "steps", "memcpy", "operators", "kernels_per_step", "nccl"):
        assert numbers(turned[key]) == pytest.approx(numbers(answer[key]), rel=1e-5, abs=1e-9), key


def test_an_answer_is_small_and_json() -> None:
    names = [f"{'very::long::name::' * 30}{i}" for i in range(60)]
    events = traces.training(60)
    for i, name in enumerate(names):
        begin = 5e12 + 1000 * i
        args = {"External id": 10**6 + i, "correlation": 2 * 10**6 + i}
        events += [host("cpu_op", name, begin, 50, **args), device(name, begin + 20, 90, stream=i, **args)]
        events.append(host("cuda_runtime", "cudaMemcpy", begin + 10, 20, **args))
    text = json.dumps(summarise([traces.text(events)]).answer, allow_nan=False)
    assert len(text) <= 30_000


def test_a_recorded_training_on_a_cpu() -> None:
    """The loader sleeps 1 ms a sample, 8 samples a batch (tests/support/trace_recording.py)."""
    answer = summarise([RECORDED.read_bytes()]).answer
    assert answer["reason"] == NO_DEVICE
    assert answer["busy_share"] is None
    assert answer["devices"] == []
    assert answer["gaps"] is None
    assert answer["steps"]["count"] == 4
    assert [r["step"] for r in answer["steps"]["table"]] == [2, 3, 4, 5]
    for row in answer["steps"]["table"]:
        assert 8e-3 < row["data_wait_s"] < row["wall_s"]
    assert 0.85 < answer["steps"]["data_wait_share"] < 1
    assert answer["host"]["data_loading"]["count"] == 4
    assert answer["host"]["operator_share"] < 0.15
    calls = {r["name"]: r["calls"] for r in answer["operators"]}
    assert calls["aten::addmm"] == 8
    assert {s["call"]: s["count"] for s in answer["syncs"]}["aten::item"] == 4
    assert all(r["device_s"] is None for r in answer["operators"])


def test_what_the_recording_says_is_what_its_events_say() -> None:
    """Every figure of the host again, from the file as the standard library reads it."""
    events = [e for e in json.loads(gzip.decompress(RECORDED.read_bytes()))["traceEvents"] if e["ph"] == "X"]
    ops = [e for e in events if e["cat"] == "cpu_op"]
    answer = summarise([RECORDED.read_bytes()]).answer
    own: dict[str, float] = {}
    for op in ops:
        inner = [o for o in ops if o is not op and o["tid"] == op["tid"] and within(o, op)]
        outermost = [o for o in inner if not any(p is not o and within(o, p) for p in inner)]
        own[op["name"]] = own.get(op["name"], 0.0) + op["dur"] - sum(o["dur"] for o in outermost)
    for row in answer["operators"]:
        assert row["self_s"] * 1e6 == pytest.approx(own[row["name"]], abs=0.05)
    assert [r["name"] for r in answer["operators"]] == sorted(own, key=lambda n: -own[n])[:15]


def within(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    return bool(
        outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-3
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"traceEvents": []}', "has no events"),
        (b"[]", "has no events"),
        (b'{"traceEvents": [{"ph": "M", "name": "process_name"}]}', "has no events"),
        (b'{"traceEvents": [', "cut off before its first event"),
        (b'{"traceEvents": [{"name": 1}]}', r"no readable event \(1 cannot\)"),
        (b"", "is empty"),
    ],
)
def test_a_trace_without_events_is_an_error(data: bytes, says: str) -> None:
    with pytest.raises(GpudebugError, match=says) as caught:
        summarise([data])
    assert caught.value.next


def test_a_cut_trace_is_analysed_and_said_to_be_cut() -> None:
    data = gzip.compress(traces.text(EVENTS))
    answer = summarise([data[: len(data) // 2]]).answer
    assert answer["truncated"]
    assert answer["notes"] == ["the trace is cut off: what is there was analysed"]
    assert 0 < answer["steps"]["count"] < 20


SMALL = traces.text(traces.training(1, operators=5))
VALUES = [
    b"null",
    b"-1",
    b"1e308",
    b"1e999",
    b'"x"',
    b"[]",
    b"{}",
    b"true",
    b"9" * 30,
    b"NaN",
    b'""',
    b"-0.0",
]


@given(
    st.lists(st.tuples(st.integers(0, len(SMALL)), st.integers(0, 40), st.sampled_from(VALUES)), max_size=5)
)
def test_no_damage_is_a_defect(damage: list[tuple[int, int, bytes]]) -> None:
    """What is no trace any more is an expected error; what still is one can be told and shown."""
    data = SMALL
    for at, length, value in damage:
        data = data[:at] + value + data[at + length :]
    try:
        answer = summarise([data]).answer
    except GpudebugError as e:
        assert e.next
    else:
        json.dumps(answer, allow_nan=False)
        assert trace(TraceAnswer(file="t.json", **answer))


def test_what_thousands_of_devices_cost_does_not_grow_with_their_square() -> None:
    events = [device("k", 10.0 * n, 5.0, number=n) for n in range(4000)]
    answer = summarise([traces.text(events)]).answer
    assert len(answer["devices"]) == MOST_DEVICES
    beyond = f"{4000 - MOST_DEVICES:,} events on devices beyond the first {MOST_DEVICES} are left out"
    assert beyond in answer["notes"]


def test_oddities_are_noted() -> None:
    events = [device("a", 0, 5), device("b", 9, -3), {"ph": "X", "name": 5, "ts": 1, "dur": 1}]
    notes = summarise([traces.text(events)]).answer["notes"]
    assert notes[0] == "1 events cannot be read"
    assert notes[1] == "1 events with an impossible time are left out"
    assert any("no launch is in the trace" in note for note in notes)
