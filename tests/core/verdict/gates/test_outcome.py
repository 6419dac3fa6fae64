"""How the training ended and what its loss did."""

from __future__ import annotations

import signal

import pytest
from tests.support.trials import BASE, crashed, gate, result, run, verdict

from gpudebug.core.records import Evidence, LossEvidence
from gpudebug.core.trainlog.failure import at_own_limit
from gpudebug.core.verdict.gates import is_infrastructure, training_text, worst_trend
from gpudebug.core.words import Outcome, Result, Status, Trend


class TestOutcome:
    @pytest.mark.parametrize(
        ("outcome", "expected"),
        [
            (Outcome.COMPLETED, Result.PASS),
            (Outcome.CRASHED, Result.FAIL),
            (Outcome.TIMED_OUT, Result.FAIL),
            (Outcome.STALLED, Result.FAIL),
            (Outcome.OUTPUT_LIMIT, Result.FAIL),
            (Outcome.INTERRUPTED, Result.UNKNOWN),
            (Outcome.DEVICE_LOST, Result.UNKNOWN),
            (Outcome.SAMPLER_LOST, Result.UNKNOWN),
        ],
    )
    def test_of_each_ending(self, outcome: Outcome, expected: Result) -> None:
        assert result("outcome", BASE, [run(outcome=outcome)]) is expected

    @pytest.mark.parametrize(
        ("ending", "infrastructure"),
        [
            (crashed(None, signal=signal.SIGKILL), True),
            (crashed("signal", signal=signal.SIGKILL), True),
            (crashed("signal", signal=signal.SIGTERM), True),
            (crashed("interrupted", signal=signal.SIGINT), True),
            (crashed("signal", exit_status=137), True),
            (crashed("signal", exit_status=143), True),
            (crashed("interrupted", exit_status=130), True),
            (crashed("interrupted", exit_status=1), True),
            (crashed("oom_host", signal=signal.SIGKILL), False),
            (crashed("oom_host", exit_status=137), False),
            (crashed("oom_gpu", exit_status=1), False),
            (crashed("signal", signal=signal.SIGSEGV), False),
            (crashed("signal", exit_status=139), False),
            (crashed("cuda", signal=signal.SIGABRT), False),
            (crashed("exception", exit_status=1), False),
            (crashed("exception", signal=signal.SIGTERM), False),
            (crashed(None, exit_status=3), False),
            (run(), False),
            (run(outcome=Outcome.TIMED_OUT, signal=signal.SIGKILL), False),
            (run(outcome=Outcome.DEVICE_LOST), True),
            (run(outcome=Outcome.SAMPLER_LOST), True),
            (run(outcome=Outcome.INTERRUPTED), True),
        ],
    )
    def test_what_ended_from_outside_says_nothing_of_the_hypothesis(
        self, ending: Evidence, infrastructure: bool
    ) -> None:
        assert is_infrastructure(ending) is infrastructure

    def test_the_failure_class_and_its_line_are_said(self) -> None:
        text = training_text([run(), crashed("oom_gpu", "File x.py", "CUDA out of memory")])
        assert text == "FAILED - CRASHED (oom_gpu): CUDA out of memory"
        assert training_text([run(outcome=Outcome.TIMED_OUT)]) == "FAILED - TIMED_OUT"
        assert training_text([run()]) == "SUCCESS"


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (crashed("oom_host", signal=signal.SIGKILL), Status.INVALID),
        (crashed("oom_host", "DataLoader worker (pid 7) is killed by signal: Killed."), Status.INVALID),
        (crashed("signal", "exitcode  : -9 (pid: 7)"), Status.INVALID),
        (crashed("oom_host", "MemoryError"), Status.REJECTED),
    ],
)
def test_what_the_hosts_killer_ended_is_no_verdict_and_what_filled_its_own_limit_is(
    ending: Evidence, status: Status
) -> None:
    assert verdict(BASE, [ending]).status is status
    assert ending.failure is not None
    own = at_own_limit(ending.failure, 2048.0)
    found = verdict(BASE, [ending.model_copy(update={"failure": own})])
    assert found.status is Status.REJECTED
    assert found.training == (
        "FAILED - CRASHED (oom_host): "
        "the kernel killed it at its memory limit of 2048 MB, which it had filled itself"
    )


class TestLoss:
    @pytest.mark.parametrize(
        ("trend", "expected"),
        [
            (Trend.CONVERGING, Result.PASS),
            (Trend.DIVERGING, Result.FAIL),
            (Trend.NAN, Result.FAIL),
            (Trend.PLATEAU, Result.UNKNOWN),
            (Trend.UNKNOWN, Result.UNKNOWN),
        ],
    )
    def test_of_each_trend(self, trend: Trend, expected: Result) -> None:
        assert result("loss", BASE, [run(61, 11, trend=trend)]) is expected
        assert result("loss", BASE, [run(61, 11, trend=trend)], loss="any") is Result.SKIPPED

    def test_the_worst_run_decides(self) -> None:
        order = [Trend.NAN, Trend.DIVERGING, Trend.UNKNOWN, Trend.PLATEAU, Trend.CONVERGING]
        for i, worst in enumerate(order):
            assert worst_trend([run(trend=t) for t in reversed(order[i:])]) is worst

    def test_too_few_points_offer_the_flag_that_logs_more_often(self) -> None:
        loss = LossEvidence(trend=Trend.UNKNOWN, points=1, advice="add --log_freq=20")
        assert gate(verdict(BASE, [run(61, 11, loss=loss)]), "loss").note == "add --log_freq=20"
