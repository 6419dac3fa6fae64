"""Versions of packages and ranges of them, by their numbers alone: `4.39.0.dev0` counts as 4.39.0."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple

_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})(?![\d])")
_BOUND = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d{1,9}(?:\.\d{1,9}){0,5})")


class Bound(NamedTuple):
    """One bound of a range, such as `>=` and `0.4`."""

    sign: str
    version: str

    def holds(self, version: str) -> bool:
        order = compare(version, self.version)
        return {
            ">=": order >= 0,
            "<=": order <= 0,
            "==": order == 0,
            "!=": order != 0,
            ">": order > 0,
            "<": order < 0,
        }[self.sign]


def numbers(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version; None if it begins with none."""
    match = _NUMBERS.match(version.strip())
    return tuple(int(part) for part in match[1].split(".")) if match else None


def compare(a: str, b: str) -> int:
    """-1, 0 or 1 as `a` is before, the same as, or after `b`; what is no version is before every version."""
    pairs = zip_longest(numbers(a) or (), numbers(b) or (), fillvalue=0)
    return next((1 if x > y else -1 for x, y in pairs if x != y), 0)


def bounds(text: str) -> tuple[Bound, ...]:
    """Return the bounds of a range such as `>=0.4,<0.6`. ValueError if it is not a range."""
    matches = [_BOUND.fullmatch(part.strip()) for part in text.split(",")]
    if not all(matches):
        raise ValueError(f"expected a range of versions, found {text!r}")
    return tuple(Bound(match[1], match[2]) for match in matches if match)


def within(version: str, range_: str) -> bool:
    return all(bound.holds(version) for bound in bounds(range_))


def reaches_below(range_: str, version: str) -> bool:
    """Tell whether a range holds versions before this one."""
    lower = [b for b in bounds(range_) if b.sign in (">=", ">", "==")]
    return all(compare(b.version, version) < 0 for b in lower)


def reaches_from(range_: str, version: str) -> bool:
    """Tell whether a range holds this version or later ones."""
    upper = [b for b in bounds(range_) if b.sign in ("<", "<=", "==")]
    return all(compare(b.version, version) >= (1 if b.sign == "<" else 0) for b in upper)
