"""Whether the metric moved far enough, and when that is unknown."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, GOOD, criteria, gate, result, run, runs, verdict

from gpudebug.core.gates import (
    Setting,
    short_window,
    window_total,
)
from gpudebug.core.words import Result


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
