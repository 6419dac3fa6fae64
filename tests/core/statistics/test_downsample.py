"""Thinned series: short, in order, made of the points themselves, and no peak is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.statistics.downsample import buckets, thin

VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, 100.0]))
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=300)
Point = tuple[float, float | None, float | None]


def series(rows: list[tuple[float | None, float | None]]) -> list[Point]:
    return [(0.2 * at, *values) for at, values in enumerate(rows)]


@given(ROWS, st.integers(2, 60))
def test_short_in_order_and_of_the_points_themselves(
    rows: list[tuple[float | None, float | None]], most: int
) -> None:
    points = series(rows)
    found = thin(points, most, (1, 2))
    assert len(found) <= most
    assert len(found) == len(points) or len(points) > most
    assert all(a[0] < b[0] for a, b in pairwise(found))
    assert set(found) <= set(points)
    assert found[:1] == points[:1]
    assert found[-1:] == points[-1:]


@given(ROWS.filter(lambda rows: len(rows) > 20), st.integers(8, 20))
def test_each_bucket_keeps_its_extremes_and_a_gap(
    rows: list[tuple[float | None, float | None]], most: int
) -> None:
    points = series(rows)
    kept = set(thin(points, most, (1, 2)))
    # At most an extreme of each kind, and a gap, of two columns.
    for start, stop in buckets(len(points), (most - 2) // 6):
        bucket, left = points[start:stop], [p for p in points[start:stop] if p in kept]
        for column in (1, 2):
            before, after = ([p[column] for p in side] for side in (bucket, left))
            assert (None in before) == (None in after) or all(v is None for v in _column(points, column))
            known, told = ([v for v in side if v is not None] for side in (before, after))
            assert (min(known, default=None), max(known, default=None)) == (
                min(told, default=None),
                max(told, default=None),
            )


def _column(points: list[Point], column: int) -> list[float | None]:
    return [p[column] for p in points]


@given(st.integers(0, 400), st.integers(0, 50))
def test_buckets_hold_every_point_between_the_ends_once(length: int, count: int) -> None:
    found = list(buckets(length, count))
    held = [at for start, stop in found for at in range(start, stop)]
    assert held == (list(range(1, length - 1)) if found else [])
    assert len(found) <= count


def test_one_peak_among_a_million_points_stays() -> None:
    points = [(float(at), 1.0) for at in range(1_000_000)]
    points[123_457] = (123_457.0, 99.0)
    points[777_777] = (777_777.0, 0.0)
    found = thin(points, 1000)
    assert {points[123_457], points[777_777]} <= set(found)
    assert len(found) <= 1000


def test_a_value_that_is_never_known_costs_no_room() -> None:
    points = [(float(at), float(at % 7), None) for at in range(1000)]
    assert thin(points, 100, (1, 2)) == thin(points, 100, (1,))
    nothing = [(float(at), None) for at in range(100)]
    assert thin(nothing, 10) == [nothing[0], nothing[-1]]


def test_a_series_has_two_ends() -> None:
    with pytest.raises(ValueError, match="two ends"):
        thin([(0.0, 1.0)], 1)
