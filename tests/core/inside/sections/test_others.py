"""Sections from a trace of our own, and from a tree that a program printed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.inside.sections.others import of_trace, printed
from gpudebug.core.inside.sections.parser import read_report

PRINTED = """\
step 110 loss 2.21
============================================================
Rollout Timing Profile (agent_step=5120)
============================================================
  Rollout Total:         15.23 ms
    - Student Forward:    3.45 ms
    - Teacher Total:     10.12 ms
        • GPU->CPU:       5.23 ms  <-- BOTTLENECK if high
        • Stack+Back:     850 us
    - Replay Store:       1.66 ms
============================================================
step 120 loss 2.11
"""


def call(name: str, ts: float, dur: Any, tid: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "cat": "section", "ph": "X", "ts": ts, "dur": dur, "pid": 1, "tid": tid, **more}


def test_calls_inside_each_other_make_a_tree_in_each_thread() -> None:
    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1},
        # Inner calls are written first; the last one seems to end after the one around it.
        *(call("data", 0, 4e5), call("step", 5e5, 6e5), call("step", 0, 1e6), call("forward", 4e5, 6e5 + 1)),
        *(
            call("data", 0, 2e5, tid=2),
            call("broken", 0, -1),
            call("open", 0, None),
            call("x", 0, 1, cat="y"),
        ),
    ]
    report = read_report(json.dumps({"displayTimeUnit": "ms", "traceEvents": events}).encode(), "t.json")
    found = {s.name: (s.calls, round(s.total_s, 6), round(s.self_s, 6)) for s in report.sections}
    assert found == {"step": (2, 1.0, 0.6), "forward": (1, 0.600001, 0.000001), "data": (2, 0.6, 0.6)}
    step, data = report.tree
    assert [child.name for child in step.children] == ["data", "forward"]
    assert (data.name, data.calls, data.children) == ("data", 1, ())
    assert report.notes == ("from a trace: of the calls that it kept",)


def test_what_is_no_trace_of_sections_is_none() -> None:
    assert [
        of_trace(one) for one in ([], {}, {"traceEvents": {}}, {"traceEvents": [3, {"cat": "kernel"}]})
    ] == [None] * 4


def test_a_printed_tree_is_read_with_its_levels() -> None:
    table = printed(PRINTED.replace("15.23", "99.0") + PRINTED, str)
    assert table is not None and table.title == "Rollout Timing Profile (agent_step=5120)"
    assert [(one.name, one.depth) for one in table.sections] == [
        *(("Rollout Total", 0), ("Student Forward", 1), ("Teacher Total", 1)),
        *(("GPU->CPU", 2), ("Stack+Back", 2), ("Replay Store", 1)),
    ]
    first, *_, copy, back, _ = table.sections
    assert (first.time_s, first.share) == (pytest.approx(0.01523), None)
    assert (copy.share, back.time_s) == (pytest.approx(5.23 / 15.23), pytest.approx(0.00085))


def test_names_are_redacted() -> None:
    table = printed(PRINTED.replace("Replay Store", "Key abc"), lambda text: text.replace("abc", "…"))
    assert table is not None and table.sections[-1].name == "Key …"


@pytest.mark.parametrize(
    "text",
    [
        "",
        PRINTED.replace("Replay Store:", "Replay Store"),
        PRINTED.partition("    - Replay")[0],
        "====================\nEpoch 3\n====================\nloss: 0.3 s\nno table\n====================\n",
        "====================\nEpoch 3\n====================\ntook: 0.3 s\n====================\n",
    ],
    ids=["nothing", "a line of another kind", "cut off", "a heading", "one line"],
)
def test_what_is_no_tree_of_times_is_none(text: str) -> None:
    assert printed(text, str) is None


@given(st.text(alphabet="=- \n:ms1.a•\t", max_size=400))
def test_any_text_is_read(text: str) -> None:
    found = printed(text, str)
    assert found is None or len(found.sections) > 1
