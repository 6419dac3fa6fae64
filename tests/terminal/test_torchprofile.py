"""What a profile says on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.answers.next import RecordedProfile
from gpudebug.terminal.torchprofile import profile, trace

TRACE: dict[str, Any] = {
    "file": "trace.json.gz",
    "files": ["trace.json.gz"],
    "path": "/r/runs/0007-profile-workload/trace.json.gz",
    "steps": 4,
    "active_step_s": 0.012345,
    "overhead": 0.234,
}


def test_the_answer_names_trace_cost_and_what_to_do_next() -> None:
    answer = RecordedProfile(
        campaign="rtc",
        role="profile-workload",
        run="0007-profile-workload",
        trace=TRACE,
        notes=("the profiler made them longer",),
        why="asked for",
        next_command="gpudebug analyze F",
    )
    assert profile(answer).splitlines() == [
        "Profile of the workload: run 0007-profile-workload, no part of its baseline",
        "trace   /r/runs/0007-profile-workload/trace.json.gz",
        "        4 iterations, 12.3 ms each, 23% longer by the profiler",
        "note: the profiler made them longer",
        "Next: gpudebug analyze F",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"overhead": None}, "4 iterations, 12.3 ms each, overhead unknown"),
        ({"overhead": -0.02}, "4 iterations, 12.3 ms each, 0% longer by the profiler"),
        ({"steps": 1, "active_step_s": None}, "1 iteration, 23% longer by the profiler"),
    ],
    ids=["unknown", "in the noise", "one"],
)
def test_what_is_not_known_is_said(changes: dict[str, Any], said: str) -> None:
    assert trace({**TRACE, **changes})[1].strip() == said


def test_what_the_trace_says_comes_below() -> None:
    analysis = {
        "busy_share": 0.432,
        "kernels_per_step": 212,
        "mean_kernel_us": 12.34,
        "operators": [{"name": f"aten::{name}"} for name in ("mm", "add", "t", "sum")],
        "steps": {"data_wait_share": 0.21},
    }
    assert trace({**TRACE, "analysis": analysis})[2:] == [
        "        device busy 43.2%, waiting for data 21.0%, 212 kernels a step of 12.3 us",
        "        most time in aten::mm, aten::add, aten::t",
    ]
    assert trace({**TRACE, "analysis": {"busy_share": None, "operators": [], "steps": None}})[2:] == []


def test_other_ranks_are_counted() -> None:
    files = ["trace.json.gz", "trace.rank1.json.gz", "trace.rank2.json.gz"]
    assert trace({**TRACE, "files": files})[0].endswith("trace.json.gz and 2 of other ranks")


@pytest.mark.parametrize("found", [None, {}, {"why": "it broke"}])
def test_no_trace_is_no_line(found: dict[str, Any] | None) -> None:
    assert trace(found) == []
