"""Long series made short for a picture without losing a peak: the extremes of each bucket stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Point = TypeVar("Point", bound=Sequence[float | None])


def thin(points: Sequence[Point], most: int, columns: Sequence[int] = (1,)) -> list[Point]:
    """At most `most` (2 or more) of the points, in their order, as they are.

    `columns` are the places of the values, finite or None, in a point. The first and the last point stay; of
    those between, cut into buckets of equal counts, in each column a lowest and a highest value and, where
    it has gaps (None), a gap.
    """
    if most < 2:
        raise ValueError("a series has two ends")
    if len(points) <= most:
        return list(points)
    items = [[point[column] for point in points] for column in columns]
    values = [(column, None in column) for column in items if any(v is not None for v in column)]
    each = sum(3 if gaps else 2 for _, gaps in values)
    kept = {0, len(points) - 1}
    for start, stop in buckets(len(points), (most - 2) // each if each else 0):
        for column, gaps in values:
            kept.update(start + at for at in _extremes(column[start:stop], gaps))
    return [points[at] for at in sorted(kept)]


def buckets(length: int, count: int) -> Iterator[tuple[int, int]]:
    """Start and stop of `count` buckets of the points between the first and the last of `length`."""
    inner = max(0, length - 2)
    count = min(count, inner)
    for at in range(count):
        yield 1 + at * inner // count, 1 + (at + 1) * inner // count


def _extremes(values: Sequence[float | None], gaps: bool) -> Iterator[int]:
    """Yield where the first lowest, the first highest and the first unknown value of a bucket are."""
    known = [v for v in values if v is not None] if gaps else values
    if known:
        yield values.index(min(known))  # type: ignore[type-var]
        yield values.index(max(known))  # type: ignore[type-var]
    if len(known) < len(values):
        yield values.index(None)
