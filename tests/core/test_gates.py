"""Each gate alone: what it asks, what it says, and when it does not know."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.support.trials import crashed, criteria, gate, run, runs, verdict

from gpudebug.core.gates import (
    Setting,
    estimate_text,
    is_infrastructure,
    short_window,
    training_text,
    window_total,
    worst_trend,
)
from gpudebug.core.models import Estimate, Evidence, LossEvidence
from gpudebug.core.words import Outcome, Result, Trend

BASE = runs(28, 27, 29, 28)
GOOD = runs(61, 62, rate=11.0)


def result(name: str, before: list[Evidence], after: list[Evidence], **changes: Any) -> Result:
    return gate(verdict(before, after, **changes), name).result


def test_every_gate_is_printed_in_its_order() -> None:
    found = verdict(BASE, GOOD)
    assert [g.name for g in found.gates] == [
        "outcome",
        "loss",
        "loss_parity",
        "delta",
        "throughput",
        "work_conserved",
        "locked_knobs",
        "one_variable",
        "change_in_effect",
        "device_to_itself",
        "environment_parity",
    ]
    assert all(g.value and g.threshold for g in found.gates)
    skipped = [g for g in found.gates if g.result is Result.SKIPPED]
    assert [g.name for g in skipped] == ["loss_parity", "change_in_effect", "device_to_itself"]
    assert all(g.note for g in skipped)


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


class TestDelta:
    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            ((28, 28, 28, 28), Result.FAIL),
            ((20, 20, 20, 20), Result.FAIL),
            ((37, 37, 37, 37), Result.FAIL),
            ((43, 43, 43, 43), Result.UNKNOWN),
            ((47.9,) * 6, Result.UNKNOWN),
            ((48.1,) * 6, Result.PASS),
            ((61, 62), Result.PASS),
            ((49,), Result.PASS),
            ((44,), Result.UNKNOWN),
            ((36,), Result.FAIL),
            ((10, 90), Result.UNKNOWN),
        ],
    )
    def test_estimate_and_interval_decide_together(self, after: tuple[float, ...], expected: Result) -> None:
        assert result("delta", BASE, runs(*after)) is expected

    @pytest.mark.parametrize(
        ("success", "failure", "expected"), [(20, 10, Result.PASS), (40, 10, Result.UNKNOWN)]
    )
    def test_the_campaigns_own_thresholds_count(
        self, success: float, failure: float, expected: Result
    ) -> None:
        assert result("delta", BASE, GOOD, success=success, failure=failure) is expected

    @pytest.mark.parametrize("part", ["baseline", "trial"])
    def test_a_wide_error_within_the_runs_of_one_side_leaves_it_open(self, part: str) -> None:
        noisy = [
            e.model_copy(update={"standard_error": 30.0}) for e in (BASE if part == "baseline" else GOOD)
        ]
        assert result("delta", BASE, GOOD) is Result.PASS
        arms = (noisy, GOOD) if part == "baseline" else (BASE, noisy)
        assert result("delta", *arms) is Result.UNKNOWN

    @pytest.mark.parametrize("field", ["utilisation", "standard_error"])
    @pytest.mark.parametrize("part", ["baseline", "trial"])
    def test_one_run_without_its_figure_makes_it_unknown_and_is_named(self, field: str, part: str) -> None:
        before, after = list(BASE), list(GOOD)
        side = before if part == "baseline" else after
        side[1] = side[1].model_copy(update={field: None, "run": "0007-y"})
        found = gate(verdict(before, after), "delta")
        assert (found.result, found.value) == (Result.UNKNOWN, "unknown")
        assert found.note == f"{part}, run 0007-y: no utilisation was measured"

    def test_a_run_shorter_than_five_seconds_says_so_and_what_would_suffice(self) -> None:
        found = gate(verdict(BASE, [run(window=None)], Setting(window_advice="--steps=900")), "delta")
        assert found.note == (
            "trial: the window is too short: 1.2 s after warm-up, at least 5 s needed; --steps=900"
        )

    def test_windows_that_sum_up_to_too_little_name_what_is_missing_and_what_would_suffice(self) -> None:
        after = runs(61, 62, rate=11.0, window=6.0)
        found = gate(verdict(BASE, after, Setting(window_advice="--steps=900")), "delta")
        assert found.result is Result.UNKNOWN
        assert found.note == (
            "the trial's windows sum up to 12.0 s over 2 runs, 18.0 s short of min_window (30 s); --steps=900"
        )

    @pytest.mark.parametrize(
        ("before", "after", "part"),
        [
            ([40], [40], None),
            ([10, 10, 10], [29.9], "trial"),
            ([10, 10], [40], "baseline"),
            ([10] * 3, [30], None),
        ],
    )
    def test_the_sum_over_runs_counts(
        self, before: list[float], after: list[float], part: str | None
    ) -> None:
        arms = [[run(window=w) for w in arm] for arm in (before, after)]
        said = short_window(criteria(), *arms)
        assert said is None if part is None else f"the {part}'s windows" in (said or "")
        assert window_total(arms[0]) == pytest.approx(sum(before))

    def test_a_reason_that_is_no_short_window_gets_no_advice_on_windows(self) -> None:
        after = run(None)
        (device,) = after.devices
        lost = device.model_copy(update={"reason": "readings cover only 80% of the window"})
        found = gate(
            verdict(BASE, [after.model_copy(update={"devices": (lost,)})], Setting(window_advice="more")),
            "delta",
        )
        assert found.note == "trial: readings cover only 80% of the window"


class TestThroughput:
    @pytest.mark.parametrize(
        ("rates", "better", "not_worse"),
        [
            ((11.0, 11.0), Result.PASS, Result.PASS),
            ((5.0, 5.0), Result.UNKNOWN, Result.PASS),
            ((5.1,), Result.UNKNOWN, Result.PASS),
            ((4.5, 4.5, 4.5, 4.5), Result.FAIL, Result.FAIL),
            ((2.0, 2.0), Result.FAIL, Result.FAIL),
        ],
    )
    def test_of_each_wish(self, rates: tuple[float, ...], better: Result, not_worse: Result) -> None:
        after = [run(61, r) for r in rates]
        assert result("throughput", BASE, after) is better
        assert result("throughput", BASE, after, throughput="not_worse") is not_worse
        assert result("throughput", BASE, after, throughput="any") is Result.SKIPPED

    @pytest.mark.parametrize("part", ["baseline", "trial"])
    def test_one_run_without_a_rate_makes_it_unknown_and_is_named(self, part: str) -> None:
        before, after = list(BASE), list(GOOD)
        (before if part == "baseline" else after)[1] = run(61, None, run="0007-y")
        found = gate(verdict(before, after), "throughput")
        assert (found.result, found.value) == (Result.UNKNOWN, "unknown")
        assert (found.note or "").startswith(f"{part}, run 0007-y: no step rate in the log")

    def test_counts_of_different_things_are_not_compared(self) -> None:
        found = verdict(BASE, runs(61, 62, rate=300.0, unit="samples"))
        assert gate(found, "throughput").result is Result.UNKNOWN
        assert gate(found, "throughput").note == "the baseline's log counts step, the trial's samples"
        assert (found.throughput_before, found.throughput_after, found.throughput_unit) == (None, None, None)

    def test_any_unit_will_do_where_it_is_the_same(self) -> None:
        found = verdict(runs(28, 29, rate=0.5, unit="epoch"), runs(61, 62, rate=1.0, unit="epoch"))
        assert found.throughput_ratio is not None
        assert found.throughput_ratio.value == pytest.approx(2)
        assert (found.throughput_before, found.throughput_after, found.throughput_unit) == (0.5, 1.0, "epoch")

    def test_one_side_alone_is_shown_and_not_compared(self) -> None:
        found = verdict(BASE, runs(61, 62, rate=None))
        assert (found.throughput_before, found.throughput_after) == (5.0, None)
        assert found.throughput_ratio is None


class TestWork:
    """Busy seconds a step: utilisation over step rate."""

    @pytest.mark.parametrize(
        ("after", "rate", "expected"),
        [
            ((56, 56), 10.0, Result.PASS),
            ((61, 62), 11.0, Result.PASS),
            ((28, 28), 10.0, Result.PASS),
            ((90, 90, 90, 90), 5.5, Result.FAIL),
            ((40, 40), 6.0, Result.UNKNOWN),
        ],
    )
    def test_is_conserved_where_a_stall_goes(
        self, after: tuple[float, ...], rate: float, expected: Result
    ) -> None:
        assert result("work_conserved", BASE, runs(*after, rate=rate)) is expected

    def test_is_unknown_without_a_rate_whatever_the_throughput_wanted(self) -> None:
        assert result("work_conserved", BASE, runs(61, rate=None), throughput="any") is Result.UNKNOWN

    @pytest.mark.parametrize("level", [0, 0.4])
    def test_an_idle_baseline_has_none(self, level: float) -> None:
        found = gate(verdict(runs(*[level] * 4), GOOD), "work_conserved")
        assert (found.result, found.note) == (
            Result.SKIPPED,
            "an idle device has no busy time to compare",
        )


class TestSetting:
    def test_locked_knobs_are_named(self) -> None:
        found = gate(verdict(BASE, GOOD, Setting(locked=("--batch_size", "--lr"))), "locked_knobs")
        assert (found.result, found.value) == (Result.FAIL, "--batch_size, --lr")

    @pytest.mark.parametrize(
        ("changes", "compound", "expected"),
        [
            (0, False, Result.PASS),
            (1, False, Result.PASS),
            (2, False, Result.FAIL),
            (2, True, Result.SKIPPED),
            (1, True, Result.PASS),
        ],
    )
    def test_one_variable(self, changes: int, compound: bool, expected: Result) -> None:
        setting = Setting(changes=changes, compound=compound)
        assert gate(verdict(BASE, GOOD, setting), "one_variable").result is expected

    def test_differences_are_named(self) -> None:
        found = gate(
            verdict(BASE, GOOD, Setting(differences=("driver", "host a and b"))), "environment_parity"
        )
        assert (found.result, found.value) == (Result.FAIL, "driver; host a and b")


@pytest.mark.parametrize(
    ("estimate", "unit", "signed", "digits", "expected"),
    [
        (Estimate(value=33.61, low=31.2, high=36.04), "pp", True, 1, "+33.6pp (95% CI +31.2 to +36.0)"),
        (Estimate(value=-0.04, low=-4, high=3.92), "pp", True, 1, "+0.0pp (95% CI -4.0 to +3.9)"),
        (Estimate(value=2.197, low=2.0, high=2.4), "x", False, 2, "2.20x (95% CI 2.00 to 2.40)"),
        (Estimate(value=5), "pp", True, 1, "+5.0pp"),
    ],
)
def test_estimates_as_text(estimate: Estimate, unit: str, signed: bool, digits: int, expected: str) -> None:
    assert estimate_text(estimate, unit, signed=signed, digits=digits) == expected
