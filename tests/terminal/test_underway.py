"""What a person reads of a run that is under way."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from gpudebug.engine.live.underway import Progress
from gpudebug.terminal.next import next_
from gpudebug.terminal.underway import progress


@pytest.mark.parametrize(
    "told, said",
    [
        (Progress(), "no run has begun yet"),
        (Progress(run="0001-h1"), "0001-h1, step unknown, time left unknown, gpu_util unknown so far"),
        (
            Progress(
                run="0002-h1", step=20, steps=100, left_s=80.0, elapsed_s=3725, gpu_util=61.04, runs_done=1
            ),
            "0002-h1, step 20 of 100, 1 h 2 min elapsed, 1 min 20 s left, gpu_util 61.0% so far, 1 run done",
        ),
        (
            Progress(run="0002-h1", step=20, runs_done=2, left_s=0.0),
            "0002-h1, step 20, 0.0 s left, gpu_util unknown so far, 2 runs done",
        ),
    ],
)
def test_progress_is_one_line_without_guesses(told: Progress, said: str) -> None:
    assert progress(asdict(told)) == said


def test_a_run_under_way_names_the_command_that_waits() -> None:
    answer = {**asdict(Progress()), "action": "running", "why": "it runs", "next_command": "gpudebug wait"}
    assert next_(answer) == "Running: it runs.\n  no run has begun yet\nNext: gpudebug wait"


def test_a_wait_for_nothing_is_a_sentence() -> None:
    idle = {"action": "idle", "why": "nothing is under way here", "next_command": "gpudebug next"}
    assert next_(idle) == "Nothing is under way here.\nNext: gpudebug next"
