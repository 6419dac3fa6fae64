"""A trial against its baseline: the estimate, how sure it is, and what more runs could still do."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.records import Estimate
from gpudebug.core.statistics.contrast import Contrast, contrast, most_fresh, ratio

RUNS = st.lists(st.floats(1, 99), min_size=1, max_size=8)
FRESH = st.lists(st.floats(1, 99), max_size=6)


def bounds(found: Estimate) -> tuple[float, float]:
    assert found.low is not None and found.high is not None
    return found.low, found.high


def width(found: Contrast) -> float:
    low, high = bounds(found.interval)
    return high - low


@given(RUNS, RUNS)
def test_a_contrast_changes_sign_with_its_sides(before: list[float], after: list[float]) -> None:
    there, back = contrast(before, after).interval, contrast(after, before).interval
    assert there.value == pytest.approx(-back.value, abs=1e-9)
    assert bounds(there)[0] == pytest.approx(-bounds(back)[1], abs=1e-9)
    assert bounds(there)[0] < there.value < bounds(there)[1]


@given(RUNS, RUNS, FRESH, st.floats(-50, 50))
def test_a_contrast_does_not_depend_on_a_common_offset(
    before: list[float], after: list[float], fresh: list[float], offset: float
) -> None:
    def moved(values: Sequence[float]) -> list[float]:
        return [v + offset for v in values]

    plain = contrast(before, after, fresh=fresh)
    other = contrast(moved(before), moved(after), fresh=moved(fresh))
    # At the very edge of what counts as drift rounding decides.
    if (plain.drift > 0) is (other.drift > 0):
        assert other.value == pytest.approx(plain.value, abs=1e-6)
        assert width(other) == pytest.approx(width(plain), rel=1e-6)


@given(RUNS, RUNS, st.floats(0.01, 100))
def test_a_ratio_does_not_depend_on_the_unit(before: list[float], after: list[float], unit: float) -> None:
    plain, back = ratio(before, after), ratio(after, before)
    scaled = ratio([v * unit for v in before], [v * unit for v in after])
    assert scaled.value == pytest.approx(plain.value, rel=1e-9)
    assert bounds(scaled)[0] == pytest.approx(bounds(plain)[0], rel=1e-6)
    assert back.value == pytest.approx(1 / plain.value, rel=1e-9)
    assert bounds(back)[1] == pytest.approx(1 / bounds(plain)[0], rel=1e-6)
    assert 0 < bounds(plain)[0] < plain.value < bounds(plain)[1]


@pytest.mark.parametrize("sd", [1.0, 3.0, 5.0])
@pytest.mark.parametrize(("before", "after", "fresh"), [(1, 1, 0), (2, 2, 0), (4, 1, 0), (4, 6, 2)])
def test_intervals_cover_the_truth_as_often_as_they_say(
    sd: float, before: int, after: int, fresh: int
) -> None:
    rng = random.Random(f"{sd} {before} {after}")
    rounds, covered = 600, 0

    def measured(level: float, count: int) -> list[float]:
        return [rng.gauss(level, sd) for _ in range(count)]

    for _ in range(rounds):
        found = contrast(measured(28, before), measured(48, after), fresh=measured(28, fresh))
        low, high = bounds(found.interval)
        covered += low <= 20 <= high
    # Run-to-run spread at the upper end of what the prior expects may cost a little.
    assert covered / rounds >= 0.9


@pytest.mark.parametrize("sd", [2.0, 4.0])
def test_an_interval_holds_at_all_of_its_looks_together(sd: float) -> None:
    rng = random.Random(7)
    rounds, held = 400, 0
    for _ in range(rounds):
        before = [rng.gauss(28, sd) for _ in range(4)]
        after = [rng.gauss(43, sd) for _ in range(6)]
        looks = (bounds(contrast(before, after[: k + 1], looks=6).interval) for k in range(6))
        held += all(low <= 15 <= high for low, high in looks)
    assert held / rounds >= 0.95


@given(RUNS, RUNS, st.integers(1, 12))
def test_more_looks_make_an_interval_wider(before: list[float], after: list[float], looks: int) -> None:
    once, more = (contrast(before, after, looks=n) for n in (looks, looks + 1))
    assert width(more) > width(once)
    assert more.value == once.value


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 5), st.floats(0, 30))
def test_more_runs_of_the_same_spread_narrow_an_interval(
    before: int, after: int, fresh: int, within: float
) -> None:
    def wide(n: int, m: int, k: int) -> float:
        return width(contrast([30.0] * n, [50.0] * m, fresh=[30.0] * k, within=(within, within)))

    assert wide(before + 1, after, fresh) < wide(before, after, fresh)
    assert wide(before, after + 1, fresh) < wide(before, after, fresh)
    assert wide(before, after, fresh + 1) < wide(before, after, fresh)


@given(RUNS, RUNS, st.floats(0, 40), st.floats(0, 40))
def test_an_interval_is_never_narrower_than_the_error_within_runs(
    before: list[float], after: list[float], first: float, second: float
) -> None:
    found = contrast(before, after, within=(first, second))
    least = 1.959 * math.sqrt(first**2 / len(before) + second**2 / len(after))
    assert width(found) / 2 >= least * (1 - 1e-9)


@given(RUNS, RUNS, st.floats(0.1, 400))
def test_a_run_that_tells_less_widens_it(before: list[float], after: list[float], extra: float) -> None:
    assert width(contrast(before, after, extra=extra)) > width(contrast(before, after))


def test_runs_that_agree_by_luck_do_not_give_an_interval_of_no_width() -> None:
    assert width(contrast([28.0, 28.0], [48.0])) > 10


class TestDrift:
    @given(RUNS, RUNS, FRESH)
    def test_the_estimate_lies_between_those_against_old_and_fresh_runs(
        self, before: list[float], after: list[float], fresh: list[float]
    ) -> None:
        if not fresh:
            return
        found = contrast(before, after, fresh=fresh)
        alone = sorted(contrast(side, after).value for side in (before, fresh))
        assert alone[0] - 1e-9 <= found.value <= alone[1] + 1e-9
        assert 0 < found.worth <= len(before) + 1e-9

    def test_fresh_runs_like_the_recorded_ones_join_them(self) -> None:
        old, new = [28.0, 27.0, 29.0, 28.0], [28.5, 27.5]
        found = contrast(old, [48.0], fresh=new)
        assert (found.drift, found.worth) == (0.0, pytest.approx(4))
        assert found.value == pytest.approx(48 - sum(old + new) / 6)

    def test_recorded_runs_of_another_level_count_for_little(self) -> None:
        found = contrast([28.0, 27.0, 29.0, 28.0], [60.0, 61.0], fresh=[48.0, 49.0, 48.0])
        assert found.drift > 100
        assert found.worth < 0.2
        assert found.value == pytest.approx(60.5 - 48.3, abs=1.5)

    def test_drift_between_the_trial_and_its_baseline_is_no_gain(self) -> None:
        """Everything became 22 pp busier: the fresh run next to the trial tells."""
        found = contrast([28.0, 27.0, 29.0, 28.0], [50.0], fresh=[50.0]).interval
        assert bounds(found)[0] < 10


class TestChance:
    @given(
        st.lists(st.floats(20, 36), min_size=2, max_size=5),
        st.lists(st.floats(20, 80), min_size=1, max_size=5),
        st.integers(0, 6),
    )
    def test_it_is_a_probability(self, before: list[float], after: list[float], fresh: int) -> None:
        found = contrast(before, after, looks=6)
        passes, fails = found.chances(20, 10, fresh=fresh, after=6)
        assert min(passes, fails) >= 0
        assert passes + fails <= 1 + 1e-9

    @pytest.mark.parametrize(
        ("after", "low", "high"),
        [
            ((43.0,) * 5, 0.0, 0.02),
            ((43.0,), 0.05, 0.5),
            ((47.0,) * 4, 0.1, 0.6),
            ((52.0,) * 4, 0.9, 1.0),
            ((30.0,) * 2, 0.95, 1.0),
        ],
    )
    def test_it_follows_from_the_estimate_and_the_runs_that_are_left(
        self, after: tuple[float, ...], low: float, high: float
    ) -> None:
        found = contrast([28.0, 27.0, 29.0, 28.0], after, looks=6)
        assert low <= sum(found.chances(20, 10, fresh=8, after=6)) <= high

    @pytest.mark.parametrize("level", [38.0, 43.0, 46.0, 50.0])
    def test_it_comes_true(self, level: float) -> None:
        """What two runs predict, against how often four more then decide; the spread is the prior's."""
        rng = random.Random(int(level))
        predicted, came = 0.0, 0
        for _ in range(500):
            before = [rng.gauss(28, 4) for _ in range(8)]
            # Without knowledge but the runs: the truth lies around their mean.
            after = [rng.gauss(level, 4) for _ in range(2)]
            now = contrast(before, after, looks=6)
            truth = rng.gauss(now.value, now.error)
            base = sum(before) / 8
            later = [*after, *(rng.gauss(base + truth, 4) for _ in range(4))]
            final = contrast(before, later, looks=6).interval
            low, high = bounds(final)
            came += (final.value >= 20 and low > 10) or (final.value < 10 and high < 20)
            predicted += sum(now.chances(20, 10, fresh=0, after=6))
        assert came / 500 == pytest.approx(predicted / 500, abs=0.1)


@pytest.mark.parametrize(
    ("runs", "worth", "expected"),
    [(6, 4, 20), (6, 3.9, 20), (6, 12, 12), (6, 40, 1), (6, 0.3, 23), (1, 4, 0)],
)
def test_the_baseline_gets_at_most_four_times_the_trials_runs(runs: int, worth: float, expected: int) -> None:
    assert most_fresh(runs, worth) == expected
