"""How the training ended and what its loss did."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.support.trials import BASE, crashed, gate, result, run, verdict

from gpudebug.core.records import Evidence, LatencyEvidence, LossEvidence, ProbeEvidence
from gpudebug.core.trainlog.failure import at_own_limit
from gpudebug.core.verdict.gates.outcome import NO_LOSS, infers, is_infrastructure, training_text, worst_trend
from gpudebug.core.verdict.gates.setting import TrialSetting
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


def inferring(**more: Any) -> Evidence:
    figures: dict[str, Any] = {"latency_p50_s": 0.01, "latency": LatencyEvidence(count=300, p50_s=0.01)}
    return run(None, None, unit=None, **{**figures, "loss": LossEvidence(), **more})


@pytest.mark.parametrize(
    "more",
    [
        {"latency": None},
        {"loss": LossEvidence(points=1)},
        {"steps": 40},
        {"probe": ProbeEvidence(pid=1, steps=40)},
    ],
    ids=["no latency", "a loss", "steps", "steps of an optimizer"],
)
def test_a_program_that_may_train_is_asked_for_its_loss(more: dict[str, Any]) -> None:
    assert infers([inferring()])
    assert not infers([inferring(), inferring(**more)])
    found = gate(verdict([inferring()], [inferring(**more)], metric="latency_p50", direction="lower"), "loss")
    assert found.result is not Result.SKIPPED


def test_one_that_infers_is_not() -> None:
    terms = {"metric": "latency_p50", "direction": "lower", "success": 1.2, "failure": 1.1}
    found = gate(verdict([inferring()], [inferring()], **terms), "loss")
    assert (found.result, found.note) == (Result.SKIPPED, NO_LOSS)


PLANNED = Outcome.ENDED_BY_PLAN


def ended(
    utilisation: float, rate: float, losses: tuple[float, float], trend: Trend = Trend.PLATEAU, **more: object
) -> Evidence:
    """A run whose loss goes from the first of `losses` to the second, evenly."""
    first, last = losses
    curve = tuple((float(step), first + (last - first) * step / 40) for step in range(41))
    known = LossEvidence(name="loss", trend=trend, points=41, curve=curve)
    return run(utilisation, rate, loss=known, **{"outcome": PLANNED, **more})


def before(first: float, last: float, trend: Trend = Trend.PLATEAU) -> list[Evidence]:
    return [ended(u, 5.0, (first, last), trend) for u in (28, 27, 29, 28)]


def after(first: float, last: float, trend: Trend = Trend.PLATEAU, **more: object) -> list[Evidence]:
    return [ended(u, 11.0, (first, last), trend, **more) for u in (61, 62)]


def test_a_run_that_was_ended_passes_as_alive() -> None:
    found = verdict(before(2.0, 1.0, Trend.CONVERGING), after(2.0, 1.0, Trend.CONVERGING))
    assert found.status is Status.VALIDATED
    assert found.training == "ENDED_BY_PLAN - alive at the end of its planned window"
    outcome = gate(found, "outcome")
    assert (outcome.result, outcome.value) == (Result.PASS, "alive at the end of its planned window")


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        # The baseline's loss falls a little, or not at all; the trial's is as low, lower or higher.
        ((2.0, 1.9), (2.0, 1.9), Result.PASS),
        ((2.0, 1.9), (2.0, 1.895), Result.PASS),
        ((2.0, 1.9), (2.0, 2.05), Result.UNKNOWN),
        ((2.0, 2.0), (2.0, 2.0), Result.PASS),
        ((2.0, 2.0), (1.9, 1.9), Result.PASS),
        ((2.0, 2.0), (2.2, 2.2), Result.UNKNOWN),
        ((2.0, 2.0), (2.9, 2.9), Result.FAIL),
    ],
)
def test_a_flat_loss_is_judged_at_equal_steps(
    old: tuple[float, float], new: tuple[float, float], result: Result
) -> None:
    found = gate(verdict(before(*old), after(*new)), "loss")
    assert (found.value, found.result) == ("PLATEAU", result)


@pytest.mark.parametrize(
    ("new", "result"),
    [((2.0, 3.0), Result.PASS), ((2.0, 2.8), Result.PASS), ((2.0, 9.0), Result.FAIL)],
)
def test_a_loss_that_rises_in_the_baseline_too_is_judged_at_equal_steps(
    new: tuple[float, float], result: Result
) -> None:
    old = before(2.0, 3.0, Trend.DIVERGING)
    found = gate(verdict(old, after(*new, Trend.DIVERGING)), "loss")
    assert (found.value, found.result) == ("DIVERGING", result)
    whole = gate(verdict(old, after(*new, Trend.DIVERGING, outcome=Outcome.COMPLETED)), "loss")
    assert whole.result is Result.UNKNOWN


def test_a_flat_loss_of_runs_that_ended_by_themselves_stays_unknown() -> None:
    found = verdict(before(2.0, 2.0), after(2.0, 2.0, outcome=Outcome.COMPLETED))
    assert gate(found, "loss").result is Result.UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "trend", "result"),
    [
        ((2.0, 1.9), (2.0, 1.9), Trend.PLATEAU, Result.PASS),
        # It does not fall, or not where the baseline's does.
        ((2.0, 1.9), (2.0, 1.99), Trend.PLATEAU, Result.UNKNOWN),
        ((2.0, 2.0), (2.0, 1.9), Trend.PLATEAU, Result.UNKNOWN),
        ((2.0, 1.0), (2.0, 1.0), Trend.CONVERGING, Result.UNKNOWN),
    ],
)
def test_of_whole_runs_a_flat_loss_falls_as_the_baselines_flat_loss_does(
    old: tuple[float, float], new: tuple[float, float], trend: Trend, result: Result
) -> None:
    whole = Outcome.COMPLETED
    runs = [e.model_copy(update={"outcome": whole}) for e in before(*old, trend)]
    found = gate(verdict(runs, after(*new, outcome=whole)), "loss")
    assert (found.value, found.result) == ("PLATEAU", result)


def test_steps_that_are_another_thing_leave_it_unknown() -> None:
    setting = TrialSetting(other_steps="the trial changes batch_size")
    found = verdict(before(2.0, 2.0), after(2.0, 2.0), setting)
    assert gate(found, "loss").result is Result.UNKNOWN


@pytest.mark.parametrize("trend", [Trend.NAN, Trend.DIVERGING])
def test_a_loss_that_breaks_is_rejected_all_the_same(trend: Trend) -> None:
    found = verdict(before(2.0, 2.0), after(2.0, 2.0, trend))
    assert (found.status, gate(found, "loss").result) == (Status.REJECTED, Result.FAIL)


def test_no_loss_at_all_stays_unknown() -> None:
    nothing = LossEvidence()
    sides = [[e.model_copy(update={"loss": nothing}) for e in side] for side in (before(2, 2), after(2, 2))]
    assert gate(verdict(*sides), "loss").result is Result.UNKNOWN
