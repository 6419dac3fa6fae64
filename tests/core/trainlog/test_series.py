"""Bounded series."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import exp, inf, nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.series import BEGIN, LIMIT, LossSeries, Thinned, trend
from gpudebug.core.words import Trend


@given(st.integers(1, 20 * LIMIT))
def test_keeps_both_ends_and_an_even_spread(count: int) -> None:
    series: Thinned[int] = Thinned()
    for value in range(count):
        series.add(value)
    kept = series.items()
    assert len(kept) <= LIMIT + 1
    assert (kept[0], kept[-1], series.count) == (0, count - 1, count)
    gaps = {b - a for a, b in itertools.pairwise(kept[:-1])}
    assert len(gaps) <= 1


def test_empty() -> None:
    assert Thinned().items() == ()


POSITIVE = st.floats(1e-6, 1e6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), "UNKNOWN"),
        ((1.0,), "UNKNOWN"),
        ((nan,), "NAN"),
        ((1.0, inf, 0.5), "NAN"),
        ((1.0, 0.89), "CONVERGING"),
        ((1.0, 0.91), "PLATEAU"),
        ((1.0, 1.24), "PLATEAU"),
        ((1.0, 1.26), "DIVERGING"),
        ((0.0, 0.0, 0.0), "PLATEAU"),
        ((-1.0, -2.0, -3.0), "CONVERGING"),
        ((-3.0, -2.0, -1.0), "DIVERGING"),
        ((4.2, 90.0, 80.0, *[60.0] * 20), "DIVERGING"),
        ((4.2, 3.0, 2.0, *[50.0] * 10), "DIVERGING"),
        # Late divergence, below the start: 11 to 3.1, then 7.1; 3.3 to 4.2 gave back little.
        (
            (
                11,
                9,
                7.2,
                6,
                5.1,
                4.4,
                4,
                3.7,
                3.5,
                3.4,
                3.3,
                3.2,
                3.15,
                3.1,
                3.3,
                4.2,
                5.3,
                6.1,
                6.6,
                6.9,
                7.1,
            ),
            "DIVERGING",
        ),
        (
            (11, 9, 7.2, 6, 5.1, 4.4, 4, 3.7, 3.5, 3.4, 3.3, 3.2, 3.15, 3.1, 3.3, 3.6, 3.9, 4.0, 4.1, 4.2),
            "CONVERGING",
        ),
        # A tenth of the log is enough; a single spike and noise are not.
        ((*[10 - 0.25 * i for i in range(32)], 5.0, 7.5, 9.0, 9.5), "DIVERGING"),
        ((*[10 - 0.25 * i for i in range(32)], 2.0, 9.0, 1.8), "CONVERGING"),
        (
            (
                4.2,
                3.6,
                3.0,
                2.6,
                2.3,
                2.1,
                1.95,
                1.8,
                1.75,
                1.6,
                1.72,
                1.5,
                1.62,
                1.45,
                1.7,
                1.5,
                1.4,
                1.6,
                1.62,
                1.6,
            ),
            "CONVERGING",
        ),
        ((5.0, 4.0, 3.0, 2.0, 50.0, 1.0, 1.0, 1.0, 1.0, 1.0), "CONVERGING"),
        # Four values whose rise was mostly taken back show no course.
        ((21.0, 9000.0, 186.0, 91.0), "UNKNOWN"),
        ((21.0, 60.0, 186.0, 171.0), "DIVERGING"),
    ],
)
def test_table(values: tuple[float, ...], expected: str) -> None:
    assert trend(values) is Trend(expected)


@given(st.lists(POSITIVE, min_size=2, max_size=60), st.floats(1e-3, 1e3))
def test_does_not_depend_on_the_scale(values: list[float], scale: float) -> None:
    one, other = trend(values), trend([value * scale for value in values])
    assert one is other or {one, other} & {Trend.PLATEAU}


@given(st.lists(POSITIVE, min_size=2, max_size=60), st.integers(0, 59))
def test_one_value_that_is_not_finite_decides(values: list[float], place: int) -> None:
    values[place % len(values)] = nan
    assert trend(values) is Trend.NAN


NOISES = (0.05, 0.1, 0.2, 0.3)
LENGTHS = (5, 6, 8, 10, 15, 20, 40, 100, 400)


def flat(count: int, noise: float, random: Random) -> list[float]:
    return [exp(random.gauss(0, noise)) for _ in range(count)]


def share(kind: Trend, make: Callable[[int, float, Random], list[float]], lengths: Sequence[int]) -> float:
    """The share of seeded curves of every length and noise that have this trend."""
    curves = [
        make(count, noise, Random(f"{count} {noise} {seed}"))
        for count in lengths
        for noise in NOISES
        for seed in range(60)
    ]
    return sum(trend(values) is kind for values in curves) / len(curves)


def test_noise_alone_is_no_divergence() -> None:
    assert share(Trend.DIVERGING, flat, LENGTHS) < 0.01
    assert all(share(Trend.DIVERGING, flat, [count]) < 0.03 for count in LENGTHS)


def test_noise_after_a_fall_is_no_divergence() -> None:
    def fallen(count: int, noise: float, random: Random) -> list[float]:
        return [value * (1 + 4 * 0.7**i) for i, value in enumerate(flat(count, noise, random))]

    assert share(Trend.DIVERGING, fallen, LENGTHS) < 0.01


def test_a_rise_is_seen_through_noise() -> None:
    def rising(count: int, noise: float, random: Random) -> list[float]:
        return [value * (1 + 4 * i / count) for i, value in enumerate(flat(count, noise / 2, random))]

    def jumping(count: int, noise: float, random: Random) -> list[float]:
        return [value * (1 if i < count * 0.6 else 6) for i, value in enumerate(flat(count, noise, random))]

    assert share(Trend.DIVERGING, rising, LENGTHS[2:]) > 0.97
    assert share(Trend.DIVERGING, jumping, LENGTHS[2:]) > 0.95


def series(*values: float, tier: int = 0, phase: str = "", undirected: bool = False) -> LossSeries:
    found = LossSeries("loss", phase, tier, 0, undirected=undirected)
    for step, value in enumerate(values):
        found.add(value, step, None, False)
    return found


@pytest.mark.parametrize(
    ("found", "trend"),
    [
        (series(2.0, 1.0), "CONVERGING"),
        (series(2.0, nan), "NAN"),
        (series(2.0, inf, phase="val"), "NAN"),
        (series(2.0, 1.0, phase="val"), "UNKNOWN"),
        (series(2.0, 1.0, tier=5), "UNKNOWN"),
        (series(2.0, 2.0, 2.0), "PLATEAU"),
        (series(2.0), "UNKNOWN"),
        (series(0.1, 0.5, 0.9, undirected=True), "UNKNOWN"),
        (series(0.1, 0.5, 9.0, undirected=True), "DIVERGING"),
    ],
)
def test_its_course(found: LossSeries, trend: str) -> None:
    assert str(found.trend()) == trend


def test_points_keep_their_steps_unless_most_share_one() -> None:
    assert [p.step for p in series(3.0, 2.0, 1.0).shown()] == [0, 1, 2]
    buffered = LossSeries("loss", "", 0, 0)
    for value in (3.0, 2.0, 1.0):
        buffered.add(value, 7, None, False)
    assert [p.step for p in buffered.shown()] == [None, None, None]


def test_its_first_points_are_kept_of_any_length() -> None:
    long = series(*(1000.0 - n for n in range(5000)))
    assert [(p.step, p.value) for p in long.begun()] == [(n, 1000.0 - n) for n in range(BEGIN)]
    buffered = LossSeries("loss", "", 0, 0)
    for value in (3.0, 2.0):
        buffered.add(value, 7, None, False)
    unnumbered = LossSeries("loss", "", 0, 0)
    unnumbered.add(3.0, None, None, False)
    assert (buffered.begun(), unnumbered.begun()) == ((), ())
