"""What a command says that it will spend, before it does."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from gpudebug.core.statistics.level import POINTS, Effect, Seen, follow
from gpudebug.core.verdict.turns import (
    Ahead,
    NextRun,
    begun,
    of_baseline,
    of_trial,
    own_sd,
    planned,
    so_far,
    span,
)


@pytest.mark.parametrize(
    ("first", "most", "text"),
    [
        (NextRun.TRIAL, 8, "1 to 5 runs are likely: trial, trial, baseline, …; never more than 13"),
        (NextRun.BASELINE, 8, "2 to 6 runs are likely: baseline, trial, trial, …; never more than 14"),
        (NextRun.TRIAL, 3, "1 to 5 runs are likely: trial, trial, baseline, …; never more than 5"),
        (NextRun.TRIAL, 2, "1 to 3 runs are likely: trial, trial, baseline"),
    ],
)
def test_a_trial_names_its_first_runs_and_how_many_there_may_be(first: NextRun, most: int, text: str) -> None:
    assert of_trial(first, [], most) == text


def test_what_runs_took_says_how_long() -> None:
    assert of_trial(NextRun.TRIAL, [70, 72], 8).startswith("1 to 5 runs are likely, 72 s to 6.0 min: ")
    assert of_trial(NextRun.TRIAL, [], 8, least=2).startswith("2 to 5 runs are likely: ")
    assert of_trial(NextRun.BASELINE, [60], 8).startswith("2 to 6 runs are likely, 2.0 min to 6.0 min: ")


def test_a_baseline_says_what_is_left_of_it() -> None:
    assert of_baseline(2, []) == "2 runs of the unchanged workload; how long one takes is not known yet"
    assert of_baseline(2, [60]) == "2 runs of about 60 s: 2.0 min of the device"
    assert of_baseline(4, [60, 64], made=3) == "1 more run of about 64 s: 64 s of the device"


TOOK = {NextRun.TRIAL: 40.0, NextRun.BASELINE: 70.0}


@pytest.mark.parametrize(
    ("made", "missing", "ahead", "text"),
    [
        (1, "", "TA", "after 1 run of the change: 2.40x; 2 more runs likely decide it, about 1.8 min"),
        (2, "", "A", "after 2 runs of the change: 2.40x; 1 more run likely decides it, about 70 s"),
        (
            2,
            "loss",
            "A",
            "after 2 runs of the change: 2.40x; loss is open: 1 more run likely decides it, about 70 s",
        ),
        (8, "", "", "after 8 runs of the change: 2.40x; all runs may leave it open"),
    ],
)
def test_after_each_run_what_is_known_and_what_is_missing(
    made: int, missing: str, ahead: str, text: str
) -> None:
    runs = [NextRun.TRIAL if letter == "T" else NextRun.BASELINE for letter in ahead]
    assert so_far(made, "2.40x", missing, runs, TOOK) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (89.4, "89 s"), (222, "3.7 min"), (7560, "2.1 h")])
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text


BASELINE = [Seen(0, False, 20.0), Seen(1, False, 21.0)]
WHOLE = list(planned(8))


def ahead(sd: float = 4.5, variance: float = 1.0) -> Ahead:
    return Ahead(BASELINE, sd, POINTS, variance)


def made(rng: random.Random, steps: list[NextRun], effect: float) -> Effect:
    kinds = [False, False, *(step is NextRun.TRIAL for step in steps)]
    values = [20.0 + effect * changed + rng.gauss(0, POINTS.sd) for changed in kinds]
    runs = [Seen(place, changed, v) for place, (changed, v) in enumerate(zip(kinds, values, strict=True))]
    return follow(runs, POINTS)


@pytest.mark.parametrize("count", [3, 5, 14])
def test_four_trials_of_five_tell_the_detectable_effect_from_none(count: int) -> None:
    steps = WHOLE[:count]
    effect = ahead().detectable_effect(steps)
    assert effect is not None
    rng = random.Random(count)
    told = [made(rng, steps, effect).bounds()[0] > 0 for _ in range(600)]
    # The level that is made does not wander: the rule allows for one that does.
    assert 0.75 <= sum(told) / len(told) <= 0.93


def test_four_trials_of_five_pass_with_the_smallest_passed() -> None:
    effect = ahead().smallest_passed(WHOLE, 20.0, 10.0)
    assert effect is not None and effect > 20
    rng = random.Random(5)
    found = [made(rng, WHOLE, effect) for _ in range(600)]
    passed = [one.value >= 20 and one.bounds()[0] > 10 for one in found]
    assert 0.75 <= sum(passed) / len(passed) <= 0.93


def test_the_runs_that_an_effect_takes_are_the_fewest_behind_a_run_of_the_baseline() -> None:
    runs = ahead().runs_for(10.0)
    assert runs is not None
    steps = list(islice(planned(200), runs.total))
    assert steps[-1] is NextRun.BASELINE
    assert (steps.count(NextRun.TRIAL), steps.count(NextRun.BASELINE)) == (runs.trial, runs.baseline)
    assert (ahead().detectable_effect(steps) or 0) <= 10.0
    before = max(n for n, step in enumerate(steps[:-1], 1) if step is NextRun.BASELINE)
    assert (ahead().detectable_effect(steps[:before]) or 0) > 10.0
    least = ahead().runs_for(1000.0)
    assert least is not None and (least.trial, least.baseline) == (2, 1)
    assert ahead().runs_for(0.01) is None


def test_what_was_begun_is_said() -> None:
    assert begun(0) == ""
    assert begun(1) == "begun: 1 complete run of the change counts when next goes on"
    assert begun(3) == "begun: 3 complete runs of the change count when next goes on"


def test_noise_and_short_runs_take_more_and_no_run_tells_nothing() -> None:
    calm, loud, short = (ahead(*args).runs_for(15.0) for args in ((3.0,), (6.0,), (3.0, 4.0)))
    assert calm is not None and loud is not None and short is not None
    assert calm.total < loud.total and calm.total < short.total
    assert ahead().detectable_effect([]) is ahead().smallest_passed([], 20.0, 10.0) is None


def test_the_runs_own_spread_is_without_what_is_assumed() -> None:
    runs = [Seen(place, False, value) for place, value in enumerate([20.0, 22.0, 20.0, 22.0])]
    found = own_sd(follow(runs, POINTS), POINTS)
    assert found == pytest.approx(1.2, abs=0.2)
    assert own_sd(follow(runs[:1], POINTS), POINTS) is None
