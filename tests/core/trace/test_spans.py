"""Interval arithmetic against a timeline that is counted microsecond by microsecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trace.spans import Cover, Named, Union, common, merged, overlap, total, union

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=25)


def arrays(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([s for s, _ in found], float)
    return start, start + np.array([d for _, d in found], float)


def counted(found: list[tuple[int, int]]) -> set[int]:
    return {t for s, d in found for t in range(s, s + d)}


@given(intervals)
def test_the_union_is_what_is_covered(found: list[tuple[int, int]]) -> None:
    start, end = union(*arrays(found))
    assert total((start, end)) == len(counted(found))
    assert (start[1:] > end[:-1]).all()
    again = merged(start, end)
    assert (again[0] == start).all()


@given(intervals, st.integers(1, 6))
def test_a_union_in_parts_is_what_is_covered(found: list[tuple[int, int]], size: int) -> None:
    whole = Union()
    start, end = arrays(sorted(found))
    pieces = [whole.add(start[i : i + size], end[i : i + size]) for i in range(0, len(found), size)]
    assert whole.total == len(counted(found))
    each = [t for p in pieces for s, e in zip(*p, strict=True) for t in range(int(s), int(e))]
    assert each == sorted(counted(found))


@given(intervals, intervals)
def test_overlap_is_what_both_cover(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    both = counted(a) & counted(b)
    one, other = union(*arrays(a)), union(*arrays(b))
    assert overlap(one, other) == len(both)
    parts = common(one, other)
    assert total(parts) == len(both)
    assert {t for s, e in zip(*parts, strict=True) for t in range(int(s), int(e))} == both


@given(intervals, intervals)
def test_cover_of_any_span(a: list[tuple[int, int]], spans: list[tuple[int, int]]) -> None:
    cover, busy = Cover(union(*arrays(a))), counted(a)
    assert cover.within(*arrays(spans)).tolist() == [
        sum(t in busy for t in range(s, s + d)) for s, d in spans
    ]


@given(intervals, st.integers(0, 80), st.integers(0, 5))
def test_holds_with_slack(a: list[tuple[int, int]], when: int, slack: int) -> None:
    start, end = union(*arrays(a))
    held = any(s <= when <= e + slack for s, e in zip(start, end, strict=True))
    assert Cover((start, end)).holds(np.array([float(when)]), slack)[0] == held


@given(intervals)
def test_named_spans_come_back_by_start(found: list[tuple[int, int]]) -> None:
    named = Named()
    for number, (start, length) in enumerate(found):
        named.add(start, start + length, number)
    start, end, name = named.arrays()
    assert start.tolist() == sorted(s for s, _ in found)
    assert [found[i] for i in name] == [(s, e - s) for s, e in zip(start, end, strict=True)]
    assert named.near == 0


def test_too_many_named_spans_are_merged_with_their_neighbours() -> None:
    named = Named(limit=1000)
    for i in range(20_000):
        named.add(10.0 * i, 10.0 * i + (9.0 if i % 7 == 3 else 4.0), i % 7)
    assert len(named) <= 1000
    assert named.near > 0
    start, end, name = named.arrays()
    # All that was covered still is, up to the last one's end, and the longest gave the name.
    assert start[0] == 0.0
    assert end.max() == 199_994.0
    assert total(merged(start, end)) >= 20_000 * 4.0
    merged_ones = end - start > 9.0
    assert (name[merged_ones] == 3).mean() > 0.8


def test_nothing_covers_nothing() -> None:
    empty = (np.empty(0), np.empty(0))
    assert total(merged(*empty)) == 0
    assert Cover(empty).until(np.array([3.0])).tolist() == [0.0]
    assert not Cover(empty).holds(np.array([3.0]))[0]
    assert overlap(empty, (np.array([1.0]), np.array([2.0]))) == 0
    assert common(empty, (np.array([1.0]), np.array([2.0])))[0].size == 0
    assert Named().union()[0].size == 0


@pytest.mark.parametrize("limit", [10, 11])
def test_the_narrowest_gaps_are_closed_first(limit: int) -> None:
    named = Named(limit=limit)
    for i in range(limit + 1):
        named.add(100.0 * i, 100.0 * i + (99.0 if i % 2 == 0 else 20.0), i)
    start, end, _ = named.arrays()
    assert len(named) == limit // 2
    assert named.near in (1.0, 80.0)
    # Each pair is one now, before any gap of 80 was closed.
    assert set(start.tolist()) <= {200.0 * i for i in range(limit)}
    assert (end >= start + 99).all()
