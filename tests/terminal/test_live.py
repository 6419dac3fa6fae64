"""The live line: what it says, how often in a pipe, and that it is gone from a terminal afterwards."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import make_replay_campaign, record

from gpudebug.core.answers.next import NothingRunning, Running
from gpudebug.core.answers.status import DeviceValue, RunProgress
from gpudebug.engine.run.live_line import Live
from gpudebug.terminal.live import LiveLine, line, progress
from gpudebug.terminal.next import next_


def moment(elapsed: float = 7.3, label: str = "0001-h1", **changes: object) -> Live:
    facts: dict[str, object] = {
        "label": label,
        "elapsed": elapsed,
        "step": 40,
        "total_steps": 200,
        "loss": 1.234,
        "gpu_util": 27.44,
        "left": 65.0,
        **changes,
    }
    return Live(**facts)  # type: ignore[arg-type]


LINES = {
    "everything": (moment(), "0001-h1  7.3 s  step 40/200  loss 1.23  util 27.4%  1 min 5 s left"),
    "no total": (moment(total_steps=None, left=None), "0001-h1  7.3 s  step 40  loss 1.23  util 27.4%"),
    "nothing yet": (
        moment(step=None, total_steps=None, loss=None, gpu_util=None, left=None),
        "0001-h1  7.3 s  no step yet  util unknown",
    ),
    "latencies without steps": (
        moment(step=None, total_steps=None, loss=None, left=None, latency=0.0123),
        "0001-h1  7.3 s  latency 12.3 ms  util 27.4%",
    ),
    "a reward and a printed rate": (
        moment(left=None, reward=-2.5, rate=(2410.0, "environment steps")),
        "loss 1.23  reward -2.5  2410 environment steps/s  util 27.4%",
    ),
    "what is counted, and what is awaited": (
        moment(step=0, total_steps=None, left=None, unit="epoch", waits_for="10 steps, about 40 s"),
        "0001-h1  7.3 s  epoch 0  loss 1.23  util 27.4%  waits for 10 steps, about 40 s",
    ),
    "nothing counts what goes on": (
        moment(step=None, total_steps=None, left=None, unit=""),
        "0001-h1  7.3 s  loss 1.23  util 27.4%",
    ),
    "idle is not unknown": (moment(gpu_util=0.0, left=0.4), "util 0.0%  0.4 s left"),
}


@pytest.mark.parametrize(("live", "text"), LINES.values(), ids=LINES)
def test_what_is_known_is_said(live: Live, text: str) -> None:
    assert line(live).endswith(text)


def test_in_a_pipe_nothing_is_said_of_what_takes_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    clock = iter([0.0, 1.0, 9.9, 10.5, 12.0, 21.0])
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with LiveLine() as live:
        for number in range(5):
            live.doing(f"checking {number}")
    assert said.getvalue().splitlines() == ["checking 2", "checking 4"]


def test_in_a_pipe_a_line_every_ten_seconds_and_one_at_the_start_of_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with LiveLine() as live:
        for tenth in range(0, 305, 5):
            live(moment(tenth / 10))
        live(moment(0.5, "0002-h1"))
    lines = said.getvalue().splitlines()
    assert [text.split("  ")[:2] for text in lines] == [
        ["0001-h1", "0.0 s"],
        ["0001-h1", "10.0 s"],
        ["0001-h1", "20.0 s"],
        ["0001-h1", "30.0 s"],
        ["0002-h1", "0.5 s"],
    ]
    assert "\x1b" not in said.getvalue()


@pytest.mark.parametrize("seconds", [3600.0, 1800.0, 60.0, 20.0])
def test_in_a_pipe_an_hour_of_runs_is_two_thousand_characters(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with LiveLine() as live:
        for run in range(round(3600 / seconds)):
            for tick in range(round(seconds)):
                live(moment(float(tick), f"{run:04}-baseline-workload", step=12345, total_steps=100_000))
    assert 600 < len(said.getvalue()) <= 2000
    assert said.getvalue().splitlines()[-1].startswith(f"{round(3600 / seconds) - 1:04}"[:2])


def test_a_remark_is_a_line_that_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveLine() as live:
        for label in ("0001-h1", "0002-h1"):
            live(moment(label=label, remark="1 other process on A100"))
            live(moment(label=label))
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("gpudebug: 1 other process on A100") == 1
    assert len(lines) == 3


def test_notes_that_were_printed_on_the_way_are_not_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with LiveLine() as live:
        live(moment(0.5, remark="hypothesis 1: 2 runs of about 12 s"))
    assert live.new_notes(("2 runs of about 12 s", "left out: 0001-h1")) == ("left out: 0001-h1",)


def test_a_command_prints_what_it_is_about_to_spend_once(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    campaign = make_replay_campaign(tmp_path / "repo", recordings, 130).pin()
    done = campaign.run("next").expect(0)
    assert (done.out + done.err).count("1 more run of about") == 1
    assert "1 more run of about" in done.err


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
