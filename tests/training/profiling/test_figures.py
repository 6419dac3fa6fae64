"""What is kept of many durations, and what is read from it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudebug.training.profiling.figures import Figures, edges, larger

DURATIONS = st.lists(st.integers(0, 10**13), min_size=1, max_size=300)


def taken(*batches: list[int]) -> Figures:
    figures = Figures()
    for batch in batches:
        figures.take(list(batch))
    return figures


@settings(deadline=None)
@given(DURATIONS)
def test_sums_and_extremes_are_exact(durations: list[int]) -> None:
    figures = taken(durations)
    assert figures.calls == len(durations) == sum(figures.buckets.values())
    assert (figures.total, figures.low, figures.high) == (sum(durations), min(durations), max(durations))


@settings(deadline=None)
@given(DURATIONS, st.floats(0, 1))
def test_a_quantile_is_off_by_less_than_a_bucket(durations: list[int], share: float) -> None:
    exact = sorted(durations)[int(share * (len(durations) - 1))]
    found = taken(durations).quantile(share)
    # The exact rank lies between two calls: the bucket is that of the lower one.
    assert exact - max(exact / 16, 1) <= found <= exact + max(exact / 16, 1)


@settings(deadline=None)
@given(DURATIONS, DURATIONS)
def test_the_order_in_which_calls_are_put_together_does_not_matter(one: list[int], other: list[int]) -> None:
    together = taken(one + other)
    apart = taken(one, other)
    added = taken(one)
    added.add(taken(other))
    for figures in (apart, added):
        for key in ("calls", "total", "low", "high", "buckets"):
            assert getattr(figures, key) == getattr(together, key)


@settings(deadline=None)
@given(st.integers(0, 1 << 60))
def test_a_duration_lies_in_its_bucket(duration: int) -> None:
    (key,) = taken([duration]).buckets
    start, width = edges(key)
    assert start <= duration < start + width
    assert width <= max(duration / 16, 1)


def test_buckets_follow_each_other_without_a_gap() -> None:
    for key in range(800):
        start, width = edges(key)
        assert edges(key + 1)[0] == start + width


def test_without_calls_there_is_no_quantile() -> None:
    with pytest.raises(ValueError, match="no calls"):
        Figures().quantile(0.5)
    figures = taken([])
    assert (figures.calls, figures.total, figures.buckets) == (0, 0, {})


def test_a_peak_outlives_what_is_cleared() -> None:
    figures = taken([5])
    figures.mem_peak, figures.errors = 7, 2
    figures.clear()
    assert (figures.calls, figures.errors, figures.mem_peak) == (0, 0, 7)


@pytest.mark.parametrize(
    ("one", "other", "expected"), [(None, None, None), (1, None, 1), (None, 2, 2), (3, 2, 3), (0, None, 0)]
)
def test_the_larger_of_two_where_either_may_be_unknown(
    one: int | None, other: int | None, expected: int | None
) -> None:
    assert larger(one, other) == expected
