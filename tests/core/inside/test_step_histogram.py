"""Bars of step times: every step is in one, few enough for a picture."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.inside.step_histogram import MOST, bars, counted, quantile


@given(st.lists(st.floats(1e-7, 1e5), max_size=200))
def test_every_step_is_in_the_bar_of_its_time(seconds: list[float]) -> None:
    found = bars(counted(seconds))
    assert len(found) <= MOST
    assert sum(count for _, _, count in found) == len(seconds)
    assert all(low < high for low, high, _ in found)
    assert all(a[1] <= b[0] * (1 + 1e-5) for a, b in pairwise(found))
    for low, high, count in found:
        inside = [s for s in seconds if low * (1 - 1e-5) <= s <= high * (1 + 1e-5)]
        assert len(inside) >= count


def test_what_is_no_time_is_in_none() -> None:
    assert bars(counted([0.0, -1.0, math.nan, math.inf])) == []
    assert bars({}) == []


def test_bars_are_as_fine_as_the_buckets_where_those_are_few() -> None:
    ((low, high, count),) = bars(counted([0.1] * 5))
    assert low <= 0.1 <= high < 1.03 * low
    assert count == 5


def test_parts_of_steps_are_counted_as_such() -> None:
    assert [count for _, _, count in bars({500: 2.52, 501: 0.01})] == [2.5]


def test_quantiles_of_bars() -> None:
    found = [[0.0, 1.0, 50], [1.0, 2.0, 0], [2.0, 4.0, 50]]
    assert [quantile(found, share) for share in (0.25, 0.5, 0.75, 1)] == [0.5, 1.0, 3.0, 4.0]
    assert quantile([], 0.5) is None
