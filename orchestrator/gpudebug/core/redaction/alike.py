"""What was derived again beside what is recorded: which fields differ, in any record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from gpudebug.core.lazy import regex

# Sums over the same values may round otherwise on another machine or Python.
_ROUNDING = 1e-9
# What is redacted without its name is one whole word; a shorter one is beside its name alone.
_WORD = regex(r"(?!-)[^\s=]{6,}={0,2}")
_NAMED = regex(r"([A-Za-z][\w.-]{1,80})[\"'\]]{0,2}(?:\s?[:=]>?\s?|\s)[\"']?\Z")
_OURS = regex(
    r"\d\s?(?:%|pp\b|x\b|\w+/s\b)|\A[\d\s.,:+-]*\Z"
    r"|\b(?:VALIDATED|REJECTED|INCONCLUSIVE|INVALID|COMPLETED|ENDED_BY_PLAN|CRASHED|SUCCESS|FAILED|CONVERGING"
    r"|PLATEAU|DIVERGING|unknown)\b"
)
# Keys of records that hold prose; every figure, verdict and outcome in it still counts.
_PROSE = {"why", "value", "threshold", "note", "notes", "unexplained", "remarks"}
_PROSE |= {"reason", "window_reason", "probe_reason", "advice", "missing"}
_FIGURE = regex(
    r"(?:(?<![\w.])[-+])?\d+(?:[.,]\d+)*"
    r"|\b(?:VALIDATED|REJECTED|INCONCLUSIVE|INVALID|COMPLETED|ENDED_BY_PLAN|CRASHED|SUCCESS|FAILED|CONVERGING"
    r"|PLATEAU|DIVERGING)\b"
)


class ListItem(NamedTuple):
    """An item of a list on the way to a value: its name or number, and its place where it was found."""

    name: str
    place: int | None


Step: TypeAlias = "str | ListItem"


class ValueDifference(NamedTuple):
    """A value that follows and the one found, with the steps that lead to it."""

    steps: tuple[Step, ...]
    expected: Any
    found: Any

    @property
    def field(self) -> str:
        """`devices[0].gpu_util.mean` for example."""
        return "".join(f"[{s.name}]" if isinstance(s, ListItem) else f".{s}" for s in self.steps).lstrip(".")


def alike(a: str, b: str) -> bool:
    """Tell whether two texts say the same: white space aside, and what is redacted in only one of them."""
    a, b = " ".join(a.split()), " ".join(b.split())
    return a == b or _covers(a, b) or _covers(b, a)


def _covers(masked: str, plain: str) -> bool:
    """Tell whether `plain` is `masked` with what a redaction takes out in the places of its redactions."""
    from gpudebug.core.redaction.redact import REDACTED

    first, *parts = masked.split(REDACTED)
    if not parts or not plain.startswith(first):
        return False
    position = len(first)
    for part in parts[:-1]:
        found = plain.find(part, position)
        if found < 0 or not _secret(plain[position:found], plain[:position], plain[found:]):
            return False
        position = found + len(part)
    end = len(plain) - len(parts[-1])
    ends = end >= position and plain.endswith(parts[-1])
    return ends and _secret(plain[position:end], plain[:position], plain[end:])


def _secret(text: str, before: str, after: str) -> bool:
    """Tell whether a redaction may have taken this out: behind a name of a secret anything, else a whole word
    that is long enough, no option with its value and no figure, verdict or outcome of ours."""
    from gpudebug.core.redaction.redact import sensitive_variable

    named = _NAMED.search(before)
    if named is not None and sensitive_variable(named[1]):
        return bool(text)
    whole = not (before[-1:].isalnum() or after[:1].isalnum()) and _WORD.fullmatch(text) is not None
    return whole and _OURS.search(text) is None


def reworded(a: str, b: str) -> bool:
    """Tell whether two texts have the same figures, verdicts and outcomes, in any words and any order."""
    return sorted(_FIGURE.findall(a)) == sorted(_FIGURE.findall(b))


def differences(
    expected: Any, found: Any, steps: tuple[Step, ...] = (), *, older: bool = False
) -> Iterator[ValueDifference]:
    """Yield where two values of JSON differ. Items of a list that have a `name` are compared by it.

    A key that `found` lacks is no difference: the record was written before the field existed. Of a series
    of values only the first difference is given. Prose of an `older` version may have other words.
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in [k for k in expected if k in found]:
            yield from differences(expected[key], found[key], (*steps, key), older=older)
    elif isinstance(expected, list) and isinstance(found, list):
        yield from _in_lists(expected, found, steps, older)
    elif not (_same(expected, found) or (older and _reworded(expected, found, steps))):
        yield ValueDifference(steps, expected, found)


def _reworded(expected: Any, found: Any, steps: tuple[Step, ...]) -> bool:
    texts = isinstance(expected, str) and isinstance(found, str)
    return (
        texts and not _PROSE.isdisjoint(s for s in steps if isinstance(s, str)) and reworded(expected, found)
    )


def _in_lists(
    expected: list[Any], found: list[Any], steps: tuple[Step, ...], older: bool
) -> Iterator[ValueDifference]:
    ours, theirs = _by_name(expected), _by_name(found)
    if ours is not None and theirs is not None:
        places = {name: index for index, name in enumerate(theirs)}
        for name in dict.fromkeys([*ours, *theirs]):
            item = ListItem(name, places.get(name))
            yield from differences(ours.get(name), theirs.get(name), (*steps, item), older=older)
    elif len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            inside = differences(one, other, (*steps, ListItem(str(index), index)), older=older)
            if isinstance(one, Mapping):
                yield from inside
            elif first := next(inside, None):
                yield first
                return
    else:
        yield ValueDifference(steps, expected, found)


def _by_name(items: list[Any]) -> dict[str, object] | None:
    """Return the items by name; None if they have none, or one name twice."""
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    named = {name: item for name, item in zip(names, items, strict=True) if isinstance(name, str) and name}
    return named if len(named) == len(items) else None


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, str) and isinstance(found, str):
        return alike(expected, found)
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, (int, float)) and isinstance(found, (int, float)):
        return math.isclose(expected, found, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return bool(expected == found)
