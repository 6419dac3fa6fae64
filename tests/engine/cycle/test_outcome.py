"""What came of somebody else's runs is what the campaign's files say, and nothing where they say nothing."""

from __future__ import annotations

from tests.support.campaigns import Campaign

from gpudebug.core.answers.next import RecordedBaseline
from gpudebug.engine.cycle.outcome import ending_of
from gpudebug.terminal.next import next_


def test_a_trial_is_told_as_its_own_command_told_it(told: Campaign) -> None:
    shown = told.json("show", "1")
    answer = ending_of(told.folder, shown["runs"][-1:])
    assert answer is not None
    assert (answer.action, answer.hypothesis, answer.verdict) == ("tested", 1, "VALIDATED")
    assert (answer.why, answer.as_json()["gates"]) == (shown["why"], shown["gates"])
    assert "VALIDATED" in next_(answer)


def test_a_baseline_is_told_as_the_status_tells_it(told: Campaign) -> None:
    status = told.json("status")["baselines"]["workload"]
    answer = ending_of(told.folder, status["runs"])
    assert isinstance(answer, RecordedBaseline)
    assert answer.role == "workload"
    assert (answer.gpu_util_text, answer.throughput_text) == (
        status["gpu_util_text"],
        status["throughput_text"],
    )
    assert "Baseline workload recorded" in next_(answer)


def test_a_session_is_told_of_its_baseline_whatever_lies_in_the_checkout(recorded: Campaign) -> None:
    runs = recorded.json("status")["baselines"]["workload"]["runs"]
    (recorded.folder / "helper.py").write_text("y = 2\n")
    answer = ending_of(recorded.folder, runs, "a")
    assert answer is not None
    assert answer.action == "recorded_baseline"
    assert ending_of(recorded.folder, runs) is None


def test_runs_that_decided_nothing_tell_nothing(told: Campaign) -> None:
    assert ending_of(told.folder, []) is None
    assert ending_of(told.folder, ["0099-h1"]) is None


def test_a_verdict_by_hand_is_none(told: Campaign) -> None:
    run = told.json("show", "1")["runs"][-1]
    told.progress.write_text(told.text.replace("Status**: VALIDATED", "Status**: REJECTED"))
    assert ending_of(told.folder, [run]) is None
