"""A run's loss over its steps, and how far two sides of runs are apart."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.statistics.loss_curve import POINTS, Begin, Distance, curve, distance, same


def falling(floor: float = 0.5, *, first: int = 0, steps: int = 400) -> list[tuple[int, float]]:
    return [(n, floor + 1.5 * math.exp(-5 * n / 400)) for n in range(first, steps + 1, 2)]


points = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 10**6)), st.floats(allow_nan=True, allow_infinity=True)),
    max_size=200,
)


@given(points)
def test_a_curve_is_short_ordered_and_finite(values: list[tuple[int | None, float]]) -> None:
    found = curve(values)
    assert len(found) <= POINTS
    assert [step for step, _ in found] == sorted({step for step, _ in found})
    assert all(math.isfinite(step) for step, _ in found)


@given(st.integers(0, 100), st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=100))
def test_a_curve_keeps_within_what_was_printed(first: int, losses: list[float]) -> None:
    found = curve((first + n, loss) for n, loss in enumerate(losses))
    assert found[0][0] >= first
    assert min(losses) - 1e-6 <= min(v for _, v in found) <= max(v for _, v in found) <= max(losses) + 1e-6


@pytest.mark.parametrize("values", [[], [(None, 1.0)], [(3, 1.0), (3, 2.0)], [(1, math.nan), (2, 1.0)]])
def test_without_steps_there_is_no_curve(values: list[tuple[int | None, float]]) -> None:
    assert curve(values) == ()


def test_the_same_training_is_no_distance_apart() -> None:
    found = distance([curve(falling())] * 4, [curve(falling())] * 2)
    assert isinstance(found, Distance)
    assert found.value.value == pytest.approx(0, abs=1e-9)
    assert found.fall == pytest.approx(1.3, abs=0.2)
    assert (found.steps[0], found.steps[1]) == (pytest.approx(295, abs=10), pytest.approx(395, abs=5))


def test_the_distance_is_that_of_the_last_quarter_at_equal_steps() -> None:
    worse = [(n, loss + 0.4) for n, loss in falling(steps=600)]
    found = distance([curve(falling())] * 4, [curve(worse)] * 2)
    assert isinstance(found, Distance)
    assert found.value.value == pytest.approx(0.4, abs=0.05)
    assert found.value.low is not None
    assert found.value.low > 0.2
    assert found.steps[1] <= 400


def test_runs_that_differ_widen_the_interval() -> None:
    trial = [curve(falling(floor=0.6))] * 2
    calm = distance([curve(falling())] * 4, trial)
    noisy = distance([curve(falling(floor=f)) for f in (0.3, 0.5, 0.7, 0.5)], trial)
    assert isinstance(calm, Distance)
    assert isinstance(noisy, Distance)
    widths = [(d.value.high or 0) - (d.value.low or 0) for d in (calm, noisy)]
    assert widths[0] < widths[1]


FLAT = [(n, 1.0 + 0.1 * (n % 3)) for n in range(0, 400, 2)]
APART = {
    "no curve": ([()], [curve(falling())], "prints no steps"),
    "no common steps": ([curve(falling())], [curve(falling(first=500, steps=900))], "no steps in common"),
    "few losses": ([((0.0, 2.0), (100.0, 1.0))], [curve(falling())], "fewer than 3 losses"),
    "no fall": ([curve(FLAT), curve([(n, v + 0.2) for n, v in FLAT])], [curve(FLAT)], "falls by less"),
}


@pytest.mark.parametrize(("before", "after", "why"), APART.values(), ids=APART)
def test_what_cannot_be_compared_says_why(before: list, after: list, why: str) -> None:  # type: ignore[type-arg]
    found = distance(before, after)
    assert isinstance(found, str)
    assert why in found


def test_losses_at_the_end_of_what_a_float_holds_are_left_out() -> None:
    exploding = [(step, 1.7e308) for step in range(1000)]
    assert curve(exploding) == ()
    kept = curve([*falling(), *((step, 1e99) for step in range(401, 500)), *exploding])
    assert max(loss for _, loss in kept) == pytest.approx(1e99)
    assert isinstance(distance([kept, kept], [kept]), (Distance, str))


NOISE = random.Random(7)
BATCHES = [NOISE.gauss(0, 0.05) for _ in range(30)]


def printed(of: Callable[[int], float], digits: int = 4, steps: int = 30, every: int = 5) -> Begin:
    return [(every * (n + 1), round(of(n), digits)) for n in range(steps)]


def loss(n: int) -> float:
    """It falls, and varies from batch to batch."""
    return 4.0 - 0.04 * n + BATCHES[n]


BEFORE = [printed(loss)] * 4
SAME = {
    "to the digit": printed(loss),
    "but for rounding": [(step, round(value + 1e-4, 4)) for step, value in printed(loss)],
    "over the steps in common": printed(loss)[:4] + printed(loss)[6:],
}
OTHER = {
    "by two digits in one line": [(s, v + (2e-4 if s == 50 else 0)) for s, v in printed(loss)],
    "of another input": printed(lambda n: loss(n) + 0.002 * BATCHES[-n]),
    "with a lower fall": printed(lambda n: loss(n) + 0.001 * n),
    "at other steps": printed(loss, every=4),
    "of too few steps": printed(loss, steps=19),
    "without steps": [],
    "with fewer digits": printed(loss, digits=2),
}


@pytest.mark.parametrize("after", SAME.values(), ids=SAME)
def test_the_same_losses_are_the_same_work(after: Begin) -> None:
    assert same([*BEFORE, after, after])


@pytest.mark.parametrize("after", OTHER.values(), ids=OTHER)
def test_other_losses_are_not(after: Begin) -> None:
    assert not same([*BEFORE, printed(loss), after])


def test_single_precision_is_no_difference() -> None:
    before = [(n, loss(n)) for n in range(30)]
    assert same([before, [(n, value * (1 + 5e-6)) for n, value in before]])
    assert same([before, [(n, value * (1 + 5e-5)) for n, value in before]]) is False


# With these, other work may print the same.
SILENT = {
    "constant": lambda n: 0.693,
    "smooth": lambda n: 4 - 0.01 * n,
    "of batches alone, as before a warm-up is over": lambda n: 4 + BATCHES[n],
    "that rises": lambda n: 4 + 0.04 * n + BATCHES[n],
}


@pytest.mark.parametrize("of", SILENT.values(), ids=SILENT)
def test_losses_that_change_little_show_nothing(of: Callable[[int], float]) -> None:
    assert same([printed(of), printed(of)]) is None


def test_of_few_digits_they_show_nothing() -> None:
    assert same([printed(loss, digits=1), printed(loss, digits=1)]) is None


def test_one_run_is_no_comparison() -> None:
    assert same([printed(loss)]) is None and same([]) is None
