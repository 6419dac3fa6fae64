"""Bounded series: of any input an even spread of at most a fixed number of points is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Point:
    """One printed value. `step` and `time` (seconds since launch) are None if not known."""

    step: int | None
    value: float
    time: float | None


class Thinned(Generic[T]):
    """Keeps the first and the last item and every k-th between; k doubles whenever the limit is met."""

    __slots__ = ("_every", "_items", "_last", "_last_kept", "count")

    def __init__(self) -> None:
        self._items: list[T] = []
        self._every = 1
        self._last: T | None = None
        self._last_kept = True
        self.count = 0

    def add(self, item: T) -> None:
        if len(self._items) >= LIMIT and self.count % self._every == 0:
            self._items = self._items[::2]
            self._every *= 2
        self._last_kept = self.count % self._every == 0
        if self._last_kept:
            self._items.append(item)
        self._last = item
        self.count += 1

    def items(self) -> tuple[T, ...]:
        if self._last_kept or self._last is None:
            return tuple(self._items)
        return (*self._items, self._last)
