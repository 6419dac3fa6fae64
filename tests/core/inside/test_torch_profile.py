"""`--torch-profile` as it is written, and what a training tells of its profile as it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.errors import UsageError
from gpudebug.core.inside.torch_profile import (
    TorchProfile,
    headline,
    overhead_of,
    parse_torch_profile,
    read_profiles,
    remarks,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default", TorchProfile(2, 2, 4)),
        ("active=8", TorchProfile(2, 2, 8)),
        ("wait=0,warmup=0,active=1", TorchProfile(0, 0, 1)),
        (" wait = 10 , active=3 ", TorchProfile(10, 2, 3)),
        ("record_shapes", TorchProfile(record_shapes=True)),
        (
            "wait=2,warmup=2,active=4,with_stack,record_shapes,profile_memory",
            TorchProfile(2, 2, 4, True, True, True),
        ),
    ],
)
def test_what_is_written_is_meant(text: str, expected: TorchProfile) -> None:
    assert parse_torch_profile(text) == expected


@given(
    st.builds(
        TorchProfile,
        st.integers(0, 10_000_000),
        st.integers(0, 1000),
        st.integers(1, 1000),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    )
)
def test_what_the_training_is_told_reads_back(spec: TorchProfile) -> None:
    assert parse_torch_profile(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "said", "next_"),
    [
        ("active=0", "active=0: expected a whole number of iterations, at least 1", "for example"),
        ("wait=-1", "wait=-1: expected a whole number of iterations, at least 0", "for example"),
        ("warmup=1.5", "warmup=1.5: expected a whole number", "for example"),
        ("active=", "active=: expected a whole number", "for example"),
        ("active=٣", "expected a whole number", "for example"),
        ("active=5000", "active=5000: at most 1,000 iterations", "for example"),
        ("wait=" + "9" * 5000, "at most 10,000,000 iterations", "for example"),
        ("active", "active needs a number of iterations", "for example"),
        ("active=4,active=5", "active is there twice", "for example"),
        ("with_stack,with_stack", "with_stack is there twice", "for example"),
        ("with_stack=true", "with_stack takes no value", "for example"),
        ("wamup=2", "there is no 'wamup'", "did you mean warmup?"),
        ("record-shape", "there is no 'record-shape'", "did you mean record_shapes?"),
        ("Active=4", "there is no 'Active'", "did you mean active?"),
        ("steps=4", "there is no 'steps'", "known are wait=N, warmup=N, active=N, record_shapes"),
        ("", "a part of it is empty", "for example"),
        ("wait=2,,active=4", "a part of it is empty", "for example"),
        ("default,active=4", "there is no 'default'", "known are"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, said: str, next_: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_torch_profile(text)
    assert refused.value.message.startswith("--torch-profile: ")
    assert said in refused.value.message
    assert next_ in str(refused.value.next)


def lines(*entries: Any) -> str:
    return "\n".join(e if isinstance(e, str) else json.dumps({"kind": "torch_profile", **e}) for e in entries)


FULL = {"pid": 1, "t": 4.0, "file": "trace.json.gz", "steps": 4, "active_step_s": 0.012, "plain_step_s": 0.01}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        (lines({"kind": "beat", "pid": 1}, '{"kind": "torch_profile", "pi'), None),
        (lines('["torch_profile"]', '"torch_profile"'), None),
        (
            lines({**FULL, "plain_step_s": None}, {**FULL, "overhead": 0.2}),
            {k: v for k, v in FULL.items() if k not in ("pid", "t")}
            | {"overhead": 0.2, "files": ["trace.json.gz"]},
        ),
        (
            lines(
                {"pid": 3, "file": "trace.rank10.json.gz", "steps": 1},
                {"pid": 2, "file": "trace.rank2.json.gz", "steps": 2},
                {"pid": 4, "why": "none"},
                {"pid": 1, "file": "trace.json.gz", "steps": 3},
            ),
            {
                "file": "trace.json.gz",
                "steps": 3,
                "files": ["trace.json.gz", "trace.rank2.json.gz", "trace.rank10.json.gz"],
            },
        ),
        (lines({"pid": 1, "why": "ended"}), {"why": "ended"}),
        (lines({"pid": 1, "file": "../../etc/passwd", "steps": 1}), {"steps": 1}),
    ],
    ids=["nothing", "torn", "no object", "the last counts", "ranks", "failed", "a path"],
)
def test_what_the_processes_told(text: str, expected: dict[str, Any] | None) -> None:
    assert read_profiles(text) == expected


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (None, ["no trace: the probe saw no process of the command"]),
        ({"why": "it broke"}, ["no trace: it broke"]),
        ({"file": "trace.json.gz", "why": "ended after 6"}, ["the trace is not whole: ended after 6"]),
        ({"file": "trace.json.gz", "overhead": 0.15}, []),
        ({"file": "trace.json.gz", "overhead": None}, []),
        ({"file": "trace.json.gz", "overhead": 0.234}, ["iterations 23% longer, more than 15%"]),
    ],
)
def test_what_is_to_be_known_of_a_trace(trace: dict[str, Any] | None, said: list[str]) -> None:
    found = remarks(trace)
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


def test_a_training_that_was_ended_is_no_program_without_one() -> None:
    (said,) = remarks(None, trained=True)
    assert "ended, by a signal or os._exit" in said


def test_of_an_analysis_the_first_rows_are_kept() -> None:
    row = {"name": "aten::mm", "calls": 3, "host_s": 0.5, "self_s": 0.4, "device_s": None}
    analysis = {
        "kind": "trace",
        "events": 7,
        "busy_share": 0.4,
        "operators": [row] * 9,
        "syncs": [{"call": "aten::item", "kind": "operator", "count": 2, "seconds": 0.1, "stacks": []}],
        "nccl": {"seconds": 0.2, "share_of_busy": 0.5, "overlapped_share": 0.25, "exposed_s": 0.15},
        "kernels": [row],
        "steps": {"count": 2, "wall_p50_s": 0.1, "data_wait_share": 0.6, "table": [1, 2]},
    }
    kept = headline(analysis)
    assert (kept["events"], kept["busy_share"], kept["kernels_per_step"]) == (7, 0.4, None)
    assert kept["operators"] == [{"name": "aten::mm", "calls": 3, "self_s": 0.4, "device_s": None}] * 5
    assert kept["memcpy"] == kept["devices"] == []
    assert kept["syncs"] == [{"call": "aten::item", "kind": "operator", "count": 2, "seconds": 0.1}]
    assert kept["nccl"] == {"seconds": 0.2, "overlapped_share": 0.25, "exposed_s": 0.15}
    assert kept["steps"] == {"count": 2, "wall_p50_s": 0.1, "busy_share": None, "data_wait_share": 0.6}
    assert {"kind", "kernels"}.isdisjoint(kept)


def test_a_trace_without_steps_or_communication_says_so() -> None:
    assert headline({})["steps"] is headline({})["nccl"] is None


def test_an_unknown_overhead_is_none() -> None:
    assert overhead_of({}) is None
    assert overhead_of({"overhead": -0.01}) == -0.01
