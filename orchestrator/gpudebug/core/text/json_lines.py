"""JSON that others wrote, parsed without trusting it; and where in its text a value is: an editor opens a
line, not a key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gpudebug.core.lazy import regex

_SPACE = regex(r"[ \t\n\r]*")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


_ANY, _FINITE = json.JSONDecoder(), json.JSONDecoder(parse_constant=_refuse)

DEEPEST = 100
"""Nesting that every reader of the values can follow."""
_OBJECT, _LIST, _ITEM = 184, 56, 40
"""What each takes in memory at least, in bytes (CPython 3.11)."""
_TIMES, _BESIDE = 8, 64 << 20
"""What all values of a text may take, by its length, and beside that."""


def parse(text: str | bytes, *, deepest: int = DEEPEST, finite: bool = False) -> Any:
    """Return the value of a JSON text.

    ValueError for any other, if it is nested deeper than `deepest`, and if it is made of so many small values
    that they take more than eight times its length and 64 MB.
    With `finite` NaN and infinity are refused too, and characters that no file holds: gpudebug writes none
    into its records.
    """
    try:
        bare = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        if _least_memory(bare) > _TIMES * len(bare) + _BESIDE:
            raise ValueError("holds too many small values")
        value = (_FINITE if finite else _ANY).decode(bare)
        if finite and ("\\ud" in bare or "\\uD" in bare):
            # The bytes of a name that is not UTF-8 can be written again; half a pair cannot.
            json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError:
        raise ValueError("is nested too deep") from None
    brackets = text.count("[") + text.count("{") if isinstance(text, str) else len(text)
    if brackets > deepest and _deeper(value, deepest):
        raise ValueError("is nested too deep")
    return value


def _least_memory(text: str) -> int:
    return _OBJECT * text.count("{") + _LIST * text.count("[") + _ITEM * text.count(",")


def _deeper(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not layer:
            return False
    return True


def line_of(text: str, steps: Iterable[str | int | None]) -> int:
    """1-based line of the value to which keys and list positions lead, in a text that is JSON.

    Where a step leads nowhere, it is the line of the value before it.
    """
    at = _behind(text, 0)
    for step in steps:
        found = next((start for key, start in _members(text, at) if key == step), None)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _behind(text: str, at: int) -> int:
    """Return the next offset that holds no white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Key or position of each member of the value at `at`, and the offset where the member's value begins."""
    closing = {"{": "}", "[": "]"}.get(text[at])
    if closing is None:
        return
    keyed = closing == "}"
    at = _behind(text, at + 1)
    position = 0
    while text[at] != closing:
        key: str | int = position
        if keyed:
            key, at = _ANY.raw_decode(text, at)
            at = _behind(text, _behind(text, at) + 1)
        yield key, at
        at = _behind(text, _ANY.raw_decode(text, at)[1])
        at = _behind(text, at + 1) if text[at] == "," else at
        position += 1
