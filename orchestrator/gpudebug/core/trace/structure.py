"""Where the objects of a JSON array end: an exact scan of text that begins inside the array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_QUOTE, _BACKSLASH, _CLOSE = ord('"'), ord("\\"), ord("}")
_STRUCTURAL = np.zeros(256, bool)
_STRUCTURAL[list(b'"\\{}[]')] = True
_OPENING = np.zeros(256, bool)
_OPENING[list(b"{[")] = True


def objects(text: bytes | bytearray) -> tuple[list[int], int | None]:
    """Offsets behind each complete object of the array, and of its closing bracket if that is there.

    `text` begins behind the array's opening bracket or behind one of its elements. Braces in strings and
    nested values are told apart; what is behind the closing bracket is not looked at.
    """
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(_STRUCTURAL[data])
    what = data[at]
    if (what == _BACKSLASH).any():
        kept = ~_escaped(at, what) & (what != _BACKSLASH)
        at, what = at[kept], what[kept]
    quote = what == _QUOTE
    outside = ~quote & (np.cumsum(quote) % 2 == 0)
    at, what = at[outside], what[outside]
    depth = np.cumsum(np.where(_OPENING[what], 1, -1))
    over = np.flatnonzero(depth < 0)
    end = int(at[over[0]]) if over.size else None
    limit = over[0] if over.size else len(at)
    at, what, depth = at[:limit], what[:limit], depth[:limit]
    return (at[(depth == 0) & (what == _CLOSE)] + 1).tolist(), end


def _escaped(at: NDArray[np.int64], what: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which characters stand behind an odd number of backslashes."""
    slash = what == _BACKSLASH
    behind = np.zeros(len(at), bool)
    behind[1:] = slash[:-1] & (np.diff(at) == 1)
    order = np.arange(len(at))
    first = np.maximum.accumulate(np.where(slash & ~behind, order, 0))
    run = np.zeros(len(at), np.int64)
    run[1:] = order[:-1] - first[:-1] + 1
    escaped: NDArray[np.bool_] = behind & (run % 2 == 1) & ~slash
    return escaped
