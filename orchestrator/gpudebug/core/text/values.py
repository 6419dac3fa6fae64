"""Whether two texts write one value: a flag's, and what a program shows of it."""

from __future__ import annotations

import math

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})


def same_value(a: str, b: str) -> bool:
    """Tell whether both write one value: numbers, truth values, rows and paths are compared as such."""
    left, right = _items(a), _items(b)
    return len(left) == len(right) and all(map(_same_item, left, right))


def finite_number(text: str) -> float | None:
    """Return the number that a text is; None for any other text."""
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _items(text: str) -> list[str]:
    inner = text.strip().strip("[]()")
    return inner.replace(",", " ").split() or [""]


def _same_item(a: str, b: str) -> bool:
    a, b = (text.strip("\"'").lower() for text in (a, b))
    if a == b:
        return True
    if {a, b} <= _YES or {a, b} <= _NO:
        return True
    numbers = finite_number(a), finite_number(b)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return a.removeprefix("./").rstrip("/") == b.removeprefix("./").rstrip("/")
