"""What is about to be spent, in words."""

from __future__ import annotations

import pytest

from gpudebug.core.verdict.spending import beside, of_baseline, of_trial, span
from gpudebug.core.words import Status


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (55, "55 s"), (90, "1.5 min"), (220, "3.7 min"), (7560, "2.1 h")]
)
def test_a_span_is_short(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_baseline_says_how_many_runs_and_how_long() -> None:
    assert of_baseline(4, [54.0, 56.0]) == "4 runs of about 55 s: 3.7 min of the device"
    assert of_baseline(4, [55.0], made=3) == "1 more run of about 55 s: 55 s of the device"
    assert of_baseline(4, []) == "4 runs of the unchanged workload; how long one takes is not known yet"


@pytest.mark.parametrize(
    ("window", "runs"), [(40.0, "2 runs of about 50 s"), (12.0, "4 runs of about 50 s"), (0.0, "7 runs of")]
)
def test_a_trial_says_what_it_takes_if_its_effect_is_clear_and_at_most(window: float, runs: str) -> None:
    found = of_trial([50.0], window, 30.0, 6, 4)
    assert found.startswith(runs)
    assert found.endswith("at most 26 runs, 21.7 min")


def test_why_the_baseline_runs_again_is_said() -> None:
    assert "may have drifted" in beside(Status.VALIDATED, 0)
    assert beside(Status.INCONCLUSIVE, 1).startswith("recording one more baseline run beside the trial")
