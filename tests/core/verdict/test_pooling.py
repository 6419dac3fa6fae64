"""How many short runs a trial may have, what they cost, and when their windows are enough together."""

from __future__ import annotations

import random

import pytest
from tests.support.trials import criteria, gate, run, runs, verdict

from gpudebug.core.records import Evidence
from gpudebug.core.verdict.gates import TrialSetting, share_seen
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.pooling import holds, in_reach, most_runs, text
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.words import Outcome, Result, Status

STEPS = criteria(metric="steps_per_s", success=1.5, failure=1.1)
BASE = runs(28, 27, 29, 28, window=12.0, duration_s=13.0)


def short(
    count: int = 1, *, window: float = 4.0, duration: float = 5.0, rate: float = 15.0
) -> list[Evidence]:
    return [run(60, rate, window=window, duration_s=duration) for _ in range(count)]


@pytest.mark.parametrize(
    ("after", "changes", "most", "reached"),
    [
        (short(), {}, 8, True),
        (short(3), {}, 8, True),
        (short(8), {}, 8, True),
        (short(1, window=2.0, duration=3.0), {}, 15, True),
        (short(1, window=2.0, duration=6.0), {}, 6, False),
        (short(1, window=4.0, duration=9.7), {}, 8, True),
        (short(1, window=4.0, duration=9.8), {}, 6, False),
        (short(), {"min_window": 6}, 6, True),
        (short(), {"max_runs": 1}, 1, False),
        (short(), {"max_runs": 2, "min_window": 3}, 3, True),
        (short(1, window=6.0, duration=7.0), {"min_window": 60}, 10, True),
        (short(1, window=6.0), {}, 6, True),
        (runs(60, window=6.0), {"min_window": 60}, 6, False),
        (runs(60, window=None, duration_s=1.0), {}, 6, False),
    ],
)
def test_short_runs_may_be_more_than_max_runs_where_they_take_no_longer(
    after: list[Evidence], changes: dict[str, float], most: int, reached: bool
) -> None:
    wanted = criteria(**changes)
    assert most_runs(wanted, BASE, after) == most
    assert in_reach(wanted, BASE, after) is reached


def test_fewer_than_three_short_windows_are_not_enough_however_long_they_are_together() -> None:
    wanted = criteria(metric="steps_per_s", success=1.5, failure=1.1, min_window=6)
    two, three = ([judge(1, wanted, BASE, short(n), TrialSetting())] for n in (2, 3))
    assert two[0].status is Status.INCONCLUSIVE
    assert "too short to count alone: 1 more are needed" in str(gate(two[0], "delta").note)
    assert three[0].status is Status.VALIDATED
    assert share_seen(wanted, short(2)) == pytest.approx(2 / 3)
    assert share_seen(criteria(min_window=1), short(3, window=1.5)) == pytest.approx(0.9)


def test_a_trial_of_short_runs_goes_on_until_their_windows_are_enough() -> None:
    made, steps = short(), []
    while len(made) < 12:
        found = judge(1, STEPS, BASE, made, TrialSetting())
        steps.append(next_step(found, STEPS, BASE, made, TrialSetting()))
        if steps[-1] is not NextRun.TRIAL:
            break
        made += short()
    assert (len(made), found.status) == (8, Status.VALIDATED)
    # It is confirmed as any other is.
    assert steps[-1] is NextRun.BASELINE


def test_runs_that_would_cost_too_much_are_not_made() -> None:
    after = short(1, window=2.0, duration=6.0)
    found = judge(1, STEPS, BASE, after, TrialSetting())
    assert found.status is Status.INCONCLUSIVE
    assert next_step(found, STEPS, BASE, after, TrialSetting()) is NextRun.DONE
    assert text(STEPS, BASE, after) == (
        "windows are not pooled: a run of the trial has 2.0 s of steady window, and the 15 runs that 30 s "
        "take would use the device for longer than 6 runs of the baseline (max_runs)"
    )
    assert text(STEPS, BASE, short()) == (
        "windows are pooled: a run of the trial has 4.0 s of steady window, so about 8 runs make up 30 s, "
        "the start-up of each left out"
    )
    assert text(STEPS, BASE, short(window=6.0)) is None


def test_the_spread_between_short_runs_is_in_the_interval() -> None:
    uneven = [
        run(60, rate, window=4.0, duration_s=5.0) for rate in (5.0, 30.0, 6.0, 25.0, 5.5, 28.0, 7.0, 26.0)
    ]
    found = judge(1, STEPS, BASE, uneven, TrialSetting())
    assert gate(found, "delta").result is not Result.PASS
    assert found.delta is not None
    assert found.delta.low is not None
    assert found.delta.low < 1.1


def test_short_runs_without_effect_are_not_validated() -> None:
    """Of true effects at the failure threshold, by short runs that vary twice as much as long ones."""
    random.seed(1)
    validated = 0
    for _ in range(300):
        before = [run(28, random.gauss(10, 0.5), window=12.0, duration_s=13.0) for _ in range(4)]
        after = [run(28, random.gauss(11, 1.1), window=4.0, duration_s=5.0) for _ in range(8)]
        validated += verdict(before, after, metric="steps_per_s", success=1.1, failure=1.1).status is (
            Status.VALIDATED
        )
    assert validated <= 3


@pytest.mark.parametrize(
    ("window", "duration", "min_window", "times"),
    [
        (12.0, 13.0, 30.0, 12.0),
        (12.0, 20.0, 30.0, 4.5),
        (12.0, 20.0, 120.0, 1.0),
        (12.0, 12.0, 30.0, 12.0),
    ],
)
def test_the_baseline_says_how_fast_a_trial_may_be_that_is_pooled(
    window: float, duration: float, min_window: float, times: float
) -> None:
    before = runs(28, 29, window=window, duration_s=duration)
    assert holds(before, min_window, 6) == pytest.approx(times)


def test_what_pooling_holds_is_unknown_without_windows_or_durations() -> None:
    assert holds([], 30.0, 6) is None
    assert holds(runs(28, window=None, duration_s=9.0), 30.0, 6) is None
    assert holds(runs(28, window=12.0), 30.0, 6) is None
    assert holds(runs(28, window=12.0, duration_s=13.0), 30.0, 1) is None
    assert holds(runs(28, duration_s=13.0, outcome=Outcome.ENDED_BY_PLAN), 30.0, 6) is None
