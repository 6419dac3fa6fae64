"""The loss trend: one pure rule over the printed values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from statistics import median

from gpudebug.core.records import Trend

HIGHER, LOWER = 1.25, 0.90
BLOW_UP = 2.0
FEWEST = 10
"""Fewer values show no course of their own after the fall."""

GIVEN_BACK = 0.2
"""Of what the loss had gained: a rise by more at the end is a divergence, though it ends below the start."""

BEYOND_NOISE = 4.0
"""In median distances between neighbours: the lowest of ten windows is below the level by one or two."""


def trend(values: Sequence[float]) -> Trend:
    """The trend of a training loss from its printed values in order.

    NAN if any value is not finite. Else the median of the last 20 % is set against the start: above
    1.25 times the start is DIVERGING, below 0.90 CONVERGING, between them PLATEAU; fewer than two
    values are UNKNOWN. The thresholds are those of the recorded training logs' definition. The start is
    the median of the first 10 %; if that is more than twice the very first value, the loss blew up
    inside the first tenth, and the first value is the start. For a start at or below zero the change is
    taken relative to its magnitude, so that a more negative loss is a lower one.

    A loss that fell and then rose for good is DIVERGING too, wherever it ends: see `_rises_late`.
    """
    if not all(map(isfinite, values)):
        return Trend.NAN
    count = len(values)
    if count < 2:
        return Trend.UNKNOWN
    first = values[0]
    start = median(values[: max(1, count // 10)])
    if 0 < BLOW_UP * first < start:
        start = first
    end = median(values[-max(1, count // 5) :])
    scale = abs(start) or max(map(abs, values))
    if scale == 0:
        return Trend.PLATEAU
    change = 1 + (end - start) / scale
    if change > HIGHER or _rises_late(values, start):
        return Trend.DIVERGING
    return Trend.CONVERGING if change < LOWER else Trend.PLATEAU


def _rises_late(values: Sequence[float], start: float) -> bool:
    """Whether the last tenth is all above the lowest window before it, by more than noise.

    Windows are a tenth of the values, at least three. The rise must be a quarter of the lowest level, a
    fifth of what the loss had gained until then, and four times the usual distance of two neighbours.
    """
    if len(values) < FEWEST:
        return False
    size = max(3, len(values) // 10)
    tail, before = values[-size:], values[:-size]
    windows = [before[at : at + size] for at in range(0, len(before) - size + 1, size)]
    lowest = min(windows, key=median)
    low = median(lowest)
    rise = median(tail) - low
    noise = median(abs(b - a) for a, b in pairwise(values))
    return (
        min(tail) > max(lowest)
        and rise > (HIGHER - 1) * abs(low)
        and rise > GIVEN_BACK * (start - low)
        and rise > BEYOND_NOISE * noise
    )
