"""What a person reads of a run that is under way."""

from __future__ import annotations

import pytest

from gpudebug.core.answers.devices import DeviceValue
from gpudebug.core.answers.next import NothingRunning, Running
from gpudebug.core.answers.progress import RunProgress
from gpudebug.terminal.next import next_
from gpudebug.terminal.underway import progress


@pytest.mark.parametrize(
    "told, said",
    [
        (RunProgress(), "no run has begun yet"),
        (
            RunProgress(run="0001-h1", latency_s=0.0123),
            "0001-h1, latency 12.3 ms, time left unknown, gpu_util unknown so far",
        ),
        (RunProgress(run="0001-h1"), "0001-h1, step unknown, time left unknown, gpu_util unknown so far"),
        (
            RunProgress(
                run="0002-h1", step=20, steps=100, left_s=80.0, elapsed_s=3725, gpu_util=61.04, runs_done=1
            ),
            "0002-h1, step 20 of 100, 1 h 2 min elapsed, 1 min 20 s left, gpu_util 61.0% so far, 1 run done",
        ),
        (
            RunProgress(
                run="0002-h1", left_s=0.0, gpu_util=88.0, least=DeviceValue(index=3, uuid="GPU-3", value=3.72)
            ),
            "0002-h1, step unknown, 0.0 s left, gpu_util 88.0% so far (least 3.7%, GPU 3)",
        ),
        (
            RunProgress(run="0002-h1", step=20, runs_done=2, left_s=0.0),
            "0002-h1, step 20, 0.0 s left, gpu_util unknown so far, 2 runs done",
        ),
    ],
)
def test_progress_is_one_line_without_guesses(told: RunProgress, said: str) -> None:
    assert progress(told) == said


def test_a_run_under_way_names_the_command_that_waits() -> None:
    answer = Running(
        campaign="rtc",
        run=None,
        role=None,
        step=None,
        steps=None,
        left_s=None,
        elapsed_s=None,
        gpu_util=None,
        runs_done=0,
        session=None,
        since="2026",
        detached=True,
        why="it runs",
        next_command="gpudebug wait",
    )
    assert next_(answer) == "Running: it runs.\n  no run has begun yet\nNext: gpudebug wait"


def test_a_wait_for_nothing_is_a_sentence() -> None:
    answer = NothingRunning(campaign="rtc", why="nothing is under way here")
    assert next_(answer) == "Nothing is under way here.\nNext: gpudebug next"
