"""The loss trend: one pure rule over the printed values."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median

from gpudebug.core.records import Trend

HIGHER, LOWER = 1.25, 0.90
BLOW_UP = 2.0


def trend(values: Sequence[float]) -> Trend:
    """The trend of a training loss from its printed values in order.

    NAN if any value is not finite. Else the median of the last 20 % is set against the start: above
    1.25 times the start is DIVERGING, below 0.90 CONVERGING, between them PLATEAU; fewer than two
    values are UNKNOWN. The thresholds are those of the recorded training logs' definition. The start is
    the median of the first 10 %; if that is more than twice the very first value, the loss blew up
    inside the first tenth, and the first value is the start. For a start at or below zero the change is
    taken relative to its magnitude, so that a more negative loss is a lower one.
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
    if change > HIGHER:
        return Trend.DIVERGING
    return Trend.CONVERGING if change < LOWER else Trend.PLATEAU
