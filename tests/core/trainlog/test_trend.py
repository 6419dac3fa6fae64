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
