"""Intervals of time: merged ones, what they cover of others, and a bounded store of named ones."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# More named spans than this are merged with their neighbours.
LIMIT = 100_000
# Arrays as long as a trace are walked through in parts: their temporaries would outweigh them.
_BLOCK = 50_000


def blocks(count: int) -> Iterator[slice]:
    """Consecutive parts of arrays with so many elements."""
    return (slice(at, at + _BLOCK) for at in range(0, count, _BLOCK))


def merged(start: Floats, end: Floats, kept: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """Return the union (of those `kept`) as disjoint intervals in order; those that touch are one.

    `start` must be sorted.
    """
    starts, ends, reached = [], [], -np.inf
    for part in blocks(len(start)):
        begin, stop = start[part], end[part]
        if kept is not None:
            begin, stop = begin[kept[part]], stop[kept[part]]
        # How far the events before each one reach.
        before = np.maximum.accumulate(np.append(reached, stop))
        first = np.flatnonzero(begin > before[:-1])
        starts.append(begin[first])
        ends.append(before[first])
        reached = before[-1]
    if np.isinf(reached):
        return start[:0], end[:0]
    # The first interval has none before it that ends; the last one ends with all.
    ends[0] = ends[0][1:] if len(ends[0]) else ends[0]
    return np.concatenate(starts), np.concatenate([*ends, [reached]])


class Union:
    """The union of intervals that come in parts, all sorted by start: `total` is its length so far."""

    def __init__(self) -> None:
        self.total = 0.0
        self._reached = -np.inf

    def add(self, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        """Return what each interval adds, sorted and disjoint; nothing if those before it cover it."""
        reached = np.maximum.accumulate(np.append(self._reached, end))
        self._reached = float(reached[-1])
        pieces = np.maximum(start, reached[:-1]), reached[1:]
        self.total += total(pieces)
        return pieces


def union(start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """As `merged`, of intervals in any order."""
    order = np.argsort(start, kind="stable")
    return merged(start[order], end[order])


def total(intervals: tuple[Floats, Floats]) -> float:
    """Summed length of disjoint intervals."""
    return float((intervals[1] - intervals[0]).sum())


class Cover:
    """How much of any span a set of disjoint, sorted intervals covers."""

    def __init__(self, intervals: tuple[Floats, Floats]) -> None:
        self._start, self._end = intervals
        self._before = np.concatenate(([0.0], np.cumsum(self._end - self._start)))

    def until(self, when: Floats) -> Floats:
        """Covered time before each moment."""
        at = np.searchsorted(self._start, when, side="right")
        behind = np.maximum(at - 1, 0)
        if not len(self._start):
            return np.zeros(len(when))
        inside = np.minimum(when, self._end[behind]) - self._start[behind]
        return np.where(at > 0, self._before[behind] + inside, 0.0)

    def within(self, start: Floats, end: Floats) -> Floats:
        """Covered time inside each span."""
        return np.asarray(self.until(end) - self.until(start))

    def holds(self, when: Floats, slack: float = 0.0) -> NDArray[np.bool_]:
        """Tell whether each moment lies in an interval, or less than `slack` behind its end."""
        if not len(self._start):
            return np.zeros(len(when), bool)
        at = np.searchsorted(self._start, when, side="right") - 1
        return np.asarray((at >= 0) & (when <= self._end[np.maximum(at, 0)] + slack))


def common(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the parts that two sets of disjoint, sorted intervals have in common."""
    first = np.searchsorted(b[1], a[0], side="right")
    count = np.maximum(np.searchsorted(b[0], a[1], side="left") - first, 0)
    mine = np.repeat(np.arange(len(a[0])), count)
    others = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count) + first[mine]
    return np.maximum(a[0][mine], b[0][others]), np.minimum(a[1][mine], b[1][others])


def overlap(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> float:
    """Time that two sets of disjoint, sorted intervals have in common."""
    return float(Cover(b).within(*a).sum()) if len(a[0]) and len(b[0]) else 0.0


class Named:
    """Spans with a name (an integer), in 20 bytes each; beyond `limit` neighbours are merged.

    Of merged ones the longest's name stays, and what lay between them counts as covered. `near` is the
    widest gap that was closed so, in microseconds; 0 if none was.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.near = 0.0
        self._limit = limit
        self._start, self._end, self._name = array("d"), array("d"), array("i")

    def __len__(self) -> int:
        return len(self._start)

    def add(self, start: float, end: float, name: int) -> None:
        self._start.append(start)
        self._end.append(end)
        self._name.append(name)
        if len(self._start) > self._limit:
            self._shrink()

    def arrays(self) -> tuple[Floats, Floats, Ints]:
        """Start, end, name, sorted by start."""
        start, end = np.array(self._start), np.array(self._end)
        order = np.argsort(start, kind="stable")
        return start[order], end[order], np.array(self._name, np.int64)[order]

    def union(self) -> tuple[Floats, Floats]:
        start, end, _ = self.arrays()
        return merged(start, end)

    def _shrink(self) -> None:
        """Close the narrowest gaps between spans, as many as halve their number."""
        start, end, name = self.arrays()
        between = start[1:] - np.maximum.accumulate(end)[:-1]
        closed = np.argpartition(between, len(start) - self._limit // 2 - 1)[: len(start) - self._limit // 2]
        self.near = max(self.near, float(between[closed].max()))
        first = np.ones(len(start), bool)
        first[closed + 1] = False
        begin = np.flatnonzero(first)
        by_length = np.lexsort((end - start, np.cumsum(first)))
        longest = by_length[np.append(begin[1:], len(start)) - 1]
        self._start = array("d", start[begin].tobytes())
        self._end = array("d", np.maximum.reduceat(end, begin).tobytes())
        self._name = array("i", name[longest].astype(np.int32).tobytes())
