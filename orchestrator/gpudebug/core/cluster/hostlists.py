"""Node lists as Slurm writes them: `n[0-1],gpu-[01-02]-ib` names n0, n1, gpu-01-ib and gpu-02-ib."""

from __future__ import annotations

import re
from itertools import product

MOST_NODES = 4096
_BRACKET = re.compile(r"\[([^\][]*)\]")
_ABSENT = frozenset({"", "(null)", "None", "None assigned", "N/A"})


def expanded(text: str) -> tuple[str, ...]:
    """Return each node of a list, in its order; none of what is no list, and at most `MOST_NODES`."""
    if text.strip() in _ABSENT:
        return ()
    names: list[str] = []
    for part in _parts(text.strip()):
        names += _named(part, MOST_NODES - len(names))
    return tuple(names)


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part for part in (*parts, text[start:]) if part]


def _named(part: str, most: int) -> list[str]:
    pieces = _BRACKET.split(part)
    # Every second piece was in brackets.
    choices = [_numbers(piece, most) if place % 2 else [piece] for place, piece in enumerate(pieces)]
    names: list[str] = []
    for words in product(*choices):
        if len(names) >= most:
            break
        names.append("".join(words))
    return names


def _numbers(text: str, most: int) -> list[str]:
    found: list[str] = []
    for item in text.split(","):
        first, dash, last = item.partition("-")
        if not dash or not (first.isdecimal() and last.isdecimal()):
            found.append(item)
            continue
        span = range(int(first), min(int(last), int(first) + most) + 1)
        found += [str(number).zfill(len(first)) for number in span]
    return found
