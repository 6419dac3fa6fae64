"""The catalogue's expressions, compiled once: there are more than `re` itself remembers.

Agents write files of causes, too, and the texts: each match is bounded by the length that it is made on, and
all together by `limit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from gpudebug.core.errors import CatalogueError
from gpudebug.core.text.expressions import Unbounded, bounded

LEAST = 20
"""Characters on which every expression of a cause is quick."""

_SHORT = 50
_WINDOW = 200
_LONGEST = 20 * _WINDOW
_MOST_SECONDS = 20.0
_SPAN_S = 2 * _MOST_SECONDS


class CatalogueExpression:
    """An expression of the catalogue; letter case does not count."""

    def __init__(self, expression: str) -> None:
        self._compiled = re.compile(expression, re.IGNORECASE)
        self._window: int | None = None

    def search(self, text: str) -> bool:
        """Tell whether it is in the text; a long one is searched in parts that overlap by half."""
        width = self._width(text)
        starts = range(0, max(min(len(text), _LONGEST) - width // 2, 1), width // 2)
        return any(self._found(text[start : start + width]) for start in starts)

    def fullmatch(self, text: str) -> bool:
        return len(text) <= self._width(text) and self._compiled.fullmatch(text) is not None

    def _width(self, text: str) -> int:
        if len(text) <= _SHORT:
            return _SHORT
        if self._window is None:
            try:
                # On half of what is bounded it takes a fraction of the time.
                longest = bounded(self._compiled.pattern, least=1).longest // 2
            except Unbounded:
                longest = _SHORT
            self._window = min(max(longest, _SHORT), _WINDOW)
        return self._window

    def _found(self, text: str) -> bool:
        start = _clock.read()
        found = self._compiled.search(text) is not None
        _clock.took(start, self._compiled.pattern)
        return found


class _Clock:
    """What all expressions together took of late: each alone may be quick, and causes are many."""

    def __init__(self) -> None:
        self.read: Callable[[], float] = float
        self._since = self._spent = 0.0

    def took(self, start: float, expression: str) -> None:
        end = self.read()
        if end - self._since > _SPAN_S:
            self._since, self._spent = start, 0.0
        self._spent += end - start
        if self._spent > _MOST_SECONDS:
            raise CatalogueError(
                f"the expression {expression!r} takes too long",
                file="hypotheses",
                next="write it with fewer repeats",
            )


_clock = _Clock()


def limit(now: Callable[[], float]) -> None:
    """From here on expressions that take too long, by this clock, raise CatalogueError."""
    _clock.read = now


@lru_cache(maxsize=8192)
def pattern(expression: str) -> CatalogueExpression:
    return CatalogueExpression(expression)
