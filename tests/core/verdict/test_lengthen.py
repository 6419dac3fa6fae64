"""By how much runs of a fixed number of steps have to grow, and how fast a trial they still hold."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, criteria, run, runs, verdict

from gpudebug.core.records import Conditions, LossEvidence, WorkRate
from gpudebug.core.verdict.lengthen import counts_length, factor, holds, too_short, window_of_short
from gpudebug.core.words import Outcome, Status, Trend


@pytest.mark.parametrize(
    ("window", "max_runs", "times"),
    [
        (12.1, 6, 2),
        (6.0, 6, 2),
        (5.9, 6, 4),
        (3.0, 6, 4),
        (2.9, 6, 8),
        (0.0, 6, 64),
        (3.0, 1, 16),
        (0.1, 1, None),
    ],
)
def test_runs_grow_by_a_power_of_two_until_three_hold_the_window(
    window: float, max_runs: int, times: int | None
) -> None:
    assert factor(criteria(max_runs=max_runs), window) == times


def test_a_trial_is_too_short_where_no_number_of_runs_would_do() -> None:
    short, enough = run(61, 11, window=None), run(61, 11, window=6.0)
    assert too_short(verdict(BASE, [short]), criteria(), [short])
    assert not too_short(verdict(BASE, [enough]), criteria(), [enough])
    assert too_short(verdict(BASE, [enough]), criteria(max_runs=4), [enough])
    cut = run(None, None, window=None, window_reason="samples.csv is cut short: it ends at 3.0 s of 9.0 s")
    assert not too_short(verdict(BASE, [cut]), criteria(), [cut])
    broken = run(61, 11, window=None, loss=LossEvidence(trend=Trend.NAN))
    assert not too_short(verdict(BASE, [broken]), criteria(), [broken])


@pytest.mark.parametrize(
    ("more", "lengthened"),
    [
        ({}, True),
        ({"foreign_procs": 1, "foreign_share": 1.0}, False),
    ],
    ids=["on the cores", "on the device"],
)
def test_a_trial_that_is_too_short_is_lengthened_also_if_others_came(
    more: dict[str, float], lengthened: bool
) -> None:
    busy = Conditions(foreign_cpu=90.0, foreign_demand=100.0, cpu_stolen=50.0, cpu_cores=1.0, **more)
    quiet = Conditions(foreign_cpu=3.0, foreign_demand=3.0, cpu_stolen=0.0, cpu_cores=1.0)
    before = [e.model_copy(update={"conditions": quiet}) for e in BASE]
    after = [run(61, 11, window=None, conditions=busy)]
    found = verdict(before, after)
    assert (found.status, found.why[:21]) == (Status.INVALID, "the device was shared")
    assert too_short(found, criteria(), after) is lengthened
    ended = [e.model_copy(update={"outcome": Outcome.DEVICE_LOST}) for e in after]
    assert not too_short(verdict(before, ended), criteria(), ended)


def test_the_window_of_a_run_that_has_none_is_estimated() -> None:
    assert window_of_short(run(window=7.0), BASE) == 7.0
    assert window_of_short(run(None, 50.0, window=None, steps=200), BASE) == pytest.approx(3.8)
    baseline = runs(28, 29, duration_s=50.0, window=40.0)
    assert window_of_short(run(None, None, window=None, duration_s=13.0), baseline) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("window", "min_window", "times"),
    [(12.0, 30.0, 2.4), (40.0, 30.0, 8.0), (40.0, 120.0, 2.0), (4.0, 30.0, 1.0)],
)
def test_the_baseline_says_how_much_faster_a_trial_may_be(
    window: float, min_window: float, times: float
) -> None:
    assert holds(runs(28, 29, window=window), min_window, 6) == pytest.approx(times)


def test_runs_that_gpudebug_ends_hold_any_trial() -> None:
    assert holds(runs(28, 29, outcome=Outcome.ENDED_BY_PLAN), 30.0, 6) is None
    assert holds([], 30.0, 6) is None


def test_a_flag_is_believed_if_the_runs_made_as_many_steps() -> None:
    assert counts_length("--steps", 200, runs(28, steps=200))
    assert counts_length("--steps", 200, runs(28, steps=199, total_steps=200))
    assert counts_length("--steps", 200, runs(28))
    assert not counts_length("--n_steps", 128, runs(28, steps=4000))
    assert counts_length("--epochs", 3, runs(28, steps=4000))


def test_a_flag_of_timesteps_is_believed_of_runs_in_an_environment() -> None:
    work = (WorkRate(unit="environment steps", per_s=900.0, source="total_timesteps"),)
    assert counts_length("--n-timesteps", 50_000, runs(28, steps=240, work=work))
    assert not counts_length("--n-timesteps", 50_000, runs(28, steps=240))


@pytest.mark.parametrize(
    ("flag", "length"),
    [
        ("--n-epochs", False),
        ("--num_epochs", False),
        ("agent.n_epochs", False),
        ("max_epochs", True),
        ("--epochs", True),
        ("--num_train_epochs", True),
    ],
)
def test_epochs_beside_environments_may_be_passes_over_a_rollout(flag: str, length: bool) -> None:
    work = (WorkRate(unit="environment steps", per_s=900.0, source="total_timesteps"),)
    assert counts_length(flag, 10, runs(28, steps=240, work=work)) is length
