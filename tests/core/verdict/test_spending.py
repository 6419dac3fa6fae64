"""What is about to be spent, in words."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, criteria, runs, verdict

from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.verdict.spending import again_for_load, beside, most_of_trial, of_baseline, of_trial, span
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
    ("window", "first"), [(40.0, "2 runs of about 50 s"), (12.0, "4 runs of about 50 s"), (0.0, "7 runs of")]
)
def test_a_trial_says_what_it_takes_if_its_effect_is_clear_and_at_most(window: float, first: str) -> None:
    found = of_trial([50.0], window, 30.0, 6)
    assert found.startswith(first)
    most = "at most 30 runs that count (more if they are shorter) and 6 under another load, 30.0 min"
    assert found.endswith(most)


def test_a_single_run_is_not_made_again_for_its_load() -> None:
    assert of_trial([50.0], 40.0, 30.0, 1).endswith("at most 1 run that count, 50 s")
    assert of_trial([], 40.0, 30.0, 1).endswith("at most 1 run that count")


@pytest.mark.parametrize(("max_runs", "most"), [(1, 1), (3, 18), (6, 36)])
def test_a_trial_asks_for_no_more_runs_than_were_announced(max_runs: int, most: int) -> None:
    """Also if the machine drifts so far that the recorded runs count for nothing."""
    assert most_of_trial(max_runs) == most
    fresh = most - max_runs - again_for_load(max_runs)
    drifted = runs(*([60, 20] * 30)[:fresh], rate=5.0)
    after = runs(*([75, 40, 62] * 9)[:max_runs], rate=8.0)
    every, setting = [*BASE, *drifted], TrialSetting(fresh=fresh)
    found = verdict(every, after, setting, max_runs=max_runs)
    assert next_step(found, criteria(max_runs=max_runs), every, after, setting) is NextRun.DONE


def test_why_the_baseline_runs_again_is_said() -> None:
    assert "may have drifted" in beside(Status.VALIDATED, 0)
    assert beside(Status.INCONCLUSIVE, 1).startswith("recording one more baseline run beside the trial")
