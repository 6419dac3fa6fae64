"""What a trial can tell from noise, and the runs that an effect takes: against simulated trials."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.statistics import resolution
from gpudebug.core.statistics.contrast import contrast, most_fresh
from gpudebug.core.statistics.intervals import RATE_PRIOR, UTILISATION_PRIOR, Prior, pooled
from gpudebug.core.statistics.resolution import (
    Noise,
    Plan,
    RunCounts,
    detectable_effect,
    noise,
    runs_for,
    smallest_passed,
)

SD = st.floats(0.5, 8.0)
PLANS = st.builds(
    Plan, st.integers(1, 8), st.integers(1, 8), st.none() | st.integers(0, 20), st.integers(0, 20)
)


def of(sd: float, error: float = 0.0) -> Noise:
    return Noise(sd=sd, own_sd=None, runs=4, weight=4.0, error=error)


def test_noise_is_what_the_rule_learns_from_the_same_runs() -> None:
    groups = [[30.0, 31.0, 29.5, 30.2], [28.0, 27.0, 28.4]]
    found = noise(groups, UTILISATION_PRIOR, error=0.4)
    assert found is not None
    assert (found.sd, found.runs, found.error) == (pooled(groups, UTILISATION_PRIOR)[0], 7, 0.4)
    # Two groups of one command on different days: the distance between their means is not run-to-run spread.
    assert found.own_sd == pytest.approx(math.sqrt(2.2075 / 5), abs=0.001)


@pytest.mark.parametrize("groups", [[], [[]], [[], []]])
def test_without_a_run_nothing_is_known(groups: list[list[float]]) -> None:
    assert noise(groups, UTILISATION_PRIOR) is None


@pytest.mark.parametrize("groups", [[[30.0]], [[30.0], [31.0]], [[30.0], []]])
def test_single_runs_have_no_spread_of_their_own(groups: list[list[float]]) -> None:
    found = noise(groups, UTILISATION_PRIOR)
    assert found is not None
    assert found.own_sd is None
    assert found.sd == UTILISATION_PRIOR.sd


def told(rng: random.Random, plan: Plan, runs: RunCounts, sd: float, effect: float, weight: float) -> bool:
    """Whether the interval of one simulated trial excludes 0, after exactly these runs."""

    def draw(count: int, level: float) -> list[float]:
        return [rng.gauss(level, sd) for _ in range(count)]

    found = contrast(
        draw(plan.recorded, 30.0),
        draw(runs.trial, 30.0 + effect),
        fresh=draw(runs.baseline, 30.0),
        looks=plan.max_runs,
        prior=Prior(sd=sd, weight=weight),
    ).interval
    assert found.low is not None
    return found.low > 0


@pytest.mark.parametrize("plan", [Plan(4, 6), Plan(2, 3), Plan(4, 6, left=5)])
@pytest.mark.parametrize("sd", [2.0, 5.0])
def test_the_smallest_effect_is_told_by_four_trials_of_five(plan: Plan, sd: float) -> None:
    found = Noise(sd=sd, own_sd=None, runs=4, weight=8.0)
    effect = detectable_effect(found, plan)
    assert effect is not None
    last = [runs for runs in resolution._path(found, plan) if plan.left is None or runs.total <= plan.left][
        -1
    ]
    rng = random.Random(f"{plan} {sd}")
    rounds = 1500
    share = sum(told(rng, plan, last, sd, effect, 8.0) for _ in range(rounds)) / rounds
    assert share == pytest.approx(resolution.POWER, abs=0.05)


@pytest.mark.parametrize(("sd", "effect"), [(2.0, 10.0), (4.0, 10.0), (6.0, 10.0), (3.0, 4.0)])
def test_an_effect_takes_as_many_runs_as_are_told(sd: float, effect: float) -> None:
    found, plan = Noise(sd=sd, own_sd=None, runs=4, weight=8.0), Plan(4, 6)
    runs = runs_for(found, plan, effect)
    assert runs is not None
    longer = Plan(plan.recorded, max(plan.max_runs, runs.trial))
    rng = random.Random(f"{sd} {effect}")
    rounds = 1500
    share = sum(told(rng, longer, runs, sd, effect, 8.0) for _ in range(rounds)) / rounds
    assert share >= resolution.POWER - 0.05


@given(SD, PLANS)
def test_what_is_told_passes_later_and_needs_no_more_than_all_runs(sd: float, plan: Plan) -> None:
    effect = detectable_effect(of(sd), plan)
    if plan.left == 0:
        assert effect is None
        assert smallest_passed(of(sd), plan, 20.0, 10.0) is None
        return
    assert effect is not None
    passed = smallest_passed(of(sd), plan, 20.0, 10.0)
    assert passed is not None
    assert passed > max(20.0, effect)
    whole = replace(plan, left=None)
    runs = runs_for(of(sd), whole, (detectable_effect(of(sd), whole) or 0.0) * (1 + 1e-9))
    assert runs is not None
    assert runs.trial <= plan.max_runs
    assert runs.baseline <= max(0, most_fresh(plan.max_runs, plan.recorded) - plan.fresh)


@given(SD, st.floats(1.0, 30.0), st.integers(1, 6), st.integers(1, 6))
def test_a_greater_effect_or_less_noise_takes_no_more_runs(
    sd: float, effect: float, recorded: int, max_runs: int
) -> None:
    plan = Plan(recorded, max_runs)
    one = runs_for(of(sd), plan, effect)
    for other in (runs_for(of(sd), plan, 1.2 * effect), runs_for(of(sd / 1.2), plan, effect)):
        assert one is None or (other is not None and other.total <= one.total)


@given(SD, st.integers(1, 8), st.integers(2, 8), st.integers(0, 8))
def test_runs_of_the_baseline_beside_earlier_trials_are_not_made_again(
    sd: float, recorded: int, max_runs: int, fresh: int
) -> None:
    without, beside = Plan(recorded, max_runs, left=1), Plan(recorded, max_runs, left=1, fresh=fresh)
    first, second = detectable_effect(of(sd), without), detectable_effect(of(sd), beside)
    assert first is not None
    assert second is not None
    assert second < first if fresh else second == first


@given(SD, PLANS)
def test_less_device_time_resolves_no_more(sd: float, plan: Plan) -> None:
    effects = [detectable_effect(of(sd), replace(plan, left=left)) for left in range(1, 12)]
    known = [effect for effect in effects if effect is not None]
    assert len(known) == len(effects)
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(known))


def test_more_runs_than_max_runs_are_said_and_the_impossible_is_none() -> None:
    runs = runs_for(of(6.0), Plan(4, 6), 10.0)
    assert runs is not None
    assert runs.trial > 6
    assert runs_for(of(60.0), Plan(4, 6), 1.0) is None
    assert runs_for(of(4.0), Plan(4, 6), 0.0) is None


def test_uneven_runs_set_a_floor_that_no_agreement_between_them_lowers() -> None:
    calm, uneven = detectable_effect(of(1.0), Plan(4, 6)), detectable_effect(of(1.0, error=5.0), Plan(4, 6))
    assert calm is not None
    assert uneven is not None
    assert uneven > 2 * calm


def test_five_percent_of_throughput_by_rates_that_differ_by_two() -> None:
    found = noise([[math.log(rate) for rate in (10.0, 10.2, 9.8, 10.1)]], RATE_PRIOR)
    assert found is not None
    assert found.own_sd == pytest.approx(0.017, abs=0.001)
    runs = runs_for(found, Plan(4, 6), math.log(1.05))
    assert runs is not None
    assert 7 < runs.total < 60
