"""Which launch put what on the device: both carry the same correlation."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.spans import blocks

_INDEX = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def matched(wanted: array[int], launched: array[int]) -> NDArray[np.int32]:
    """For each of the `wanted` correlations the index of the first launch with it, -1 for none.

    The answer takes the place of `wanted`, in its memory: there may be a hundred million of them.
    """
    found = np.frombuffer(wanted, np.int32)
    table = _table(np.frombuffer(launched, np.uint32))
    for part in blocks(len(found)):
        correlation = found[part].view(np.uint32).astype(np.uint64)
        if not len(table):
            found[part] = -1
            continue
        row = table[np.minimum(np.searchsorted(table, correlation << _SHIFT), len(table) - 1)]
        known = (row >> _SHIFT == correlation) & (correlation != 0)
        found[part] = np.where(known, row & _INDEX, -1)
    return found


def _table(launched: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Correlation and index in one number each, sorted: half the memory of sorting by an order."""
    table = np.empty(len(launched), np.uint64)
    for part in blocks(len(launched)):
        index = np.arange(part.start, part.start + len(launched[part]), dtype=np.uint64)
        table[part] = launched[part].astype(np.uint64) << _SHIFT | index
    table.sort()
    return table
