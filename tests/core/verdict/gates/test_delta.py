"""Whether the metric moved far enough, and when that is unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import BASE, GOOD, gate, result, run, runs, verdict

from gpudebug.core.records import DeviceEvidence, Evidence, Gate
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.words import Result, Status


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
            ((58,), Result.PASS),
            ((44,), Result.UNKNOWN),
            ((28,), Result.FAIL),
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
        found = gate(verdict(BASE, [run(window=None)], TrialSetting(window_advice="--steps=900")), "delta")
        assert found.note == (
            "trial: the window is too short: 1.2 s after warm-up, at least 5 s needed; --steps=900"
        )

    def test_a_reason_that_is_no_short_window_gets_no_advice_on_windows(self) -> None:
        after = run(None)
        (device,) = after.devices
        lost = device.model_copy(update={"reason": "readings cover only 80% of the window"})
        found = gate(
            verdict(
                BASE, [after.model_copy(update={"devices": (lost,)})], TrialSetting(window_advice="more")
            ),
            "delta",
        )
        assert found.note == "trial: readings cover only 80% of the window"


class TestRatios:
    """Other metrics than utilisation: a ratio, above 1 where it is better."""

    @staticmethod
    def delta(metric: str, before: list[Evidence], after: list[Evidence], **more: object) -> Gate:
        terms = {"success": 1.2, "failure": 1.05, "metric": metric, **more}
        return gate(verdict(before, after, **terms), "delta")

    @pytest.mark.parametrize(
        ("rate", "expected"),
        [(5.0, Result.FAIL), (4.0, Result.FAIL), (5.6, Result.UNKNOWN), (7.0, Result.PASS)],
    )
    def test_of_a_rate(self, rate: float, expected: Result) -> None:
        found = self.delta("steps_per_s", runs(30, 30, 30, 30), runs(30, 30, 30, rate=rate))
        assert found.result is expected
        assert found.value.startswith(f"{rate / 5:.2f}x (95% CI ")
        assert found.threshold == "estimate >= 1.2x and lower bound > 1.05x"

    @pytest.mark.parametrize(
        ("seconds", "expected"), [(0.010, Result.FAIL), (0.020, Result.FAIL), (0.007, Result.PASS)]
    )
    def test_of_a_time_less_is_better(self, seconds: float, expected: Result) -> None:
        before = [run(latency_p50_s=0.010) for _ in range(4)]
        after = [run(latency_p50_s=seconds) for _ in range(3)]
        found = self.delta("latency_p50", before, after, direction="lower")
        assert found.result is expected
        assert found.value.startswith(f"{0.010 / seconds:.2f}x")

    @given(
        st.lists(st.floats(1, 100), min_size=2, max_size=4),
        st.lists(st.floats(1, 100), min_size=2, max_size=4),
    )
    def test_a_rate_and_the_time_of_it_give_one_answer(self, before: list[float], after: list[float]) -> None:
        rates = [[run(logged={"x": v}) for v in side] for side in (before, after)]
        times = [[run(logged={"x": 1 / v}) for v in side] for side in (before, after)]
        of_rates, of_times = (
            verdict(*arms, success=1.2, failure=1.05, metric="log:x", direction=d).delta
            for arms, d in ((rates, "higher"), (times, "lower"))
        )
        assert of_rates is not None
        assert of_times is not None
        assert of_times.model_dump() == pytest.approx(of_rates.model_dump())

    @given(st.floats(0.01, 100), st.floats(0.5, 2))
    def test_the_unit_does_not_matter(self, unit: float, gain: float) -> None:
        found = [
            verdict(
                [run(logged={"x": scale}), run(logged={"x": 1.02 * scale})],
                [run(logged={"x": gain * scale})],
                success=1.2,
                failure=1.05,
                metric="log:x",
            ).delta
            for scale in (1.0, unit)
        ]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].model_dump() == pytest.approx(found[1].model_dump())

    @pytest.mark.parametrize(
        ("metric", "says"),
        [
            ("steps_per_s", "no step rate in the log"),
            ("samples_per_s", "print `samples/s` or `batch size: N`"),
            ("step_time_p50", "fewer than 5 step times"),
            ("step_time_p95", "fewer than 20 step times"),
            ("latency_p50", "no latencies in the log"),
            ("joules_per_step", "a device reports neither energy nor power"),
            ("log:fps", "`log: {fps: …}` in gpudebug.yaml matched no positive number"),
            ("section:load", "the training recorded no sections"),
        ],
    )
    def test_a_run_that_did_not_yield_it_is_named_and_nothing_is_guessed(
        self, metric: str, says: str
    ) -> None:
        found = verdict(
            runs(30, 30, rate=None), runs(60, 60, rate=None), metric=metric, success=1.2, failure=1.1
        )
        assert found.status is Status.INCONCLUSIVE
        assert gate(found, "delta").result is Result.UNKNOWN
        assert (gate(found, "delta").note or "").startswith("trial, run 0001-x: ")
        assert says in (gate(found, "delta").note or "")

    def test_no_utilisation_is_needed(self) -> None:
        before = runs(*[None] * 4)  # type: ignore[list-item]
        assert self.delta("steps_per_s", before, [run(None, 9.0)] * 3).result is Result.PASS

    def test_of_energy_less_is_better(self) -> None:
        before, after = ([run(joules_per_step=j)] * 3 for j in (400.0, 250.0))
        found = self.delta("joules_per_step", before, after, direction="lower")
        assert (found.result, found.value[:5]) == (Result.PASS, "1.60x")

    def test_a_counter_and_power_over_time_are_not_compared(self) -> None:
        device = DeviceEvidence(index=0, uuid="GPU-0", name="x")
        before, after = (
            [run(joules_per_step=j, devices=(device.model_copy(update={"energy_by": by}),))] * 2
            for j, by in ((400.0, "counter"), (250.0, "power"))
        )
        found = self.delta("joules_per_step", before, after, direction="lower")
        assert found.result is Result.UNKNOWN
        assert found.note == (
            "joules a step are reported by counter and the steps of the log in the baseline, "
            "by power and the steps of the log in the trial"
        )

    def test_samples_told_by_different_things_are_not_compared(self) -> None:
        before = [run(samples_per_s=80.0, samples_by="flags")] * 2
        after = [run(samples_per_s=160.0, samples_by="batch")] * 2
        found = self.delta("samples_per_s", before, after)
        assert found.result is Result.UNKNOWN
        assert found.note == "samples per second are reported by flags in the baseline, by batch in the trial"

    @pytest.mark.parametrize(
        ("metric", "field", "by", "what"),
        [
            ("steps_per_s", "steps_per_s", "steps_by", "steps per second are"),
            ("step_time_p50", "step_time_p50_s", "step_time_by", "step times are"),
        ],
    )
    def test_steps_of_the_log_are_not_compared_with_those_of_the_probe(
        self, metric: str, field: str, by: str, what: str
    ) -> None:
        before = [run(**{field: 2.0})] * 2
        after = [run(**{field: 8.0, by: "probe"})] * 2
        found = self.delta(metric, before, after)
        assert found.result is Result.UNKNOWN
        assert found.note == f"{what} reported by log in the baseline, by probe in the trial"

    def test_the_figures_of_the_verdict_fit_one_another(self) -> None:
        found = verdict(BASE, runs(28, 28, rate=9.0), metric="steps_per_s", success=1.2, failure=1.05)
        assert (found.metric, found.metric_before, found.metric_after) == (
            "steps_per_s",
            pytest.approx(5.0),
            pytest.approx(9.0),
        )
        assert found.delta is not None
        assert found.delta.value == pytest.approx(9 / 5)
        assert (found.before, found.after) == (28.0, 28.0)
