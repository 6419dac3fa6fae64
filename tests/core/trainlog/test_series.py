"""Bounded series."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.series import LIMIT, Thinned


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
