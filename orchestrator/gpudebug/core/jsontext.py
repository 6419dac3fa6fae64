"""JSON text: read with a limit on its nesting, and where in it a value stands: an editor opens a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

DEEPEST = 64
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def parse(text: str) -> Any:
    """A JSON document. ValueError for another text, NaN and infinity, and more than DEEPEST levels."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _may_be_deep(text) and _is_deep(found):
        raise ValueError("nested too deeply")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _may_be_deep(text: str) -> bool:
    """Whether its brackets, those in strings too, are more levels than DEEPEST."""
    brackets = text.encode("utf-8", "surrogateescape").translate(None, _NO_BRACKETS)
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)


def _is_deep(found: object) -> bool:
    level = [found]
    for _ in range(DEEPEST):
        level = [
            member
            for value in level
            if isinstance(value, (dict, list))
            for member in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return any(isinstance(value, (dict, list)) for value in level)


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
    """The next offset that holds no white space."""
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
            key, at = _decode(text, at)
            at = _behind(text, _behind(text, at) + 1)
        yield key, at
        at = _behind(text, _decode(text, at)[1])
        at = _behind(text, at + 1) if text[at] == "," else at
        position += 1
