"""The rule for the loss trend."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.records import Trend
from gpudebug.core.trainlog.trend import trend

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
