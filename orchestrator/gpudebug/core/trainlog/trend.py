"""The loss trend: one pure rule over the printed values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import isfinite, sqrt
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

BEYOND_WANDERING = 3.0
"""In the largest rise of a window over the one before it while the loss still fell."""

SURE = 3.5
"""Standard errors by which the end is above the start if a rise is no noise. `test_trend.py` holds what it
brings: of flat curves with independent noise of 5 to 30 %, less than 2 % are called DIVERGING."""

MOST_UNKNOWN = 4
"""So few values show no noise: their rise is taken as it is."""

FEW = 12
"""Fewer values do not show by halves how noisy they are: their order says more."""

IN_ORDER = 2.2
"""Standard deviations of Kendall's count: about 1 in 100 orders of 5 to 11 values that say nothing."""

NOISE_OF_DISTANCE = 0.954
"""The median distance of two values with normal noise, in its standard deviations."""


def trend(values: Sequence[float]) -> Trend:
    """Return the trend of a training loss from its printed values in order.

    NAN if any value is not finite. Else the median of the last 20 % is set against the start: above
    1.25 times the start, by more than noise, is DIVERGING, below 0.90 CONVERGING, between them PLATEAU;
    fewer than two values are UNKNOWN. The thresholds are those of the recorded training logs' definition.
    The start is the median of the first 10 %; if that is more than twice the very first value, the loss blew
    up inside the first tenth, and the first value is the start. For a start at or below zero the change is
    taken relative to its magnitude, so that a more negative loss is a lower one.

    A loss that fell and then rose for good is DIVERGING too, wherever it ends: see `_rises_late`.
    """
    if not all(map(isfinite, values)):
        return Trend.NAN
    count = len(values)
    if count < 2:
        return Trend.UNKNOWN
    head = max(1, count // 10)
    start = median(values[:head])
    if 0 < BLOW_UP * values[0] < start:
        start, head = values[0], 1
    end = median(values[-max(1, count // 5) :])
    scale = abs(start) or max(map(abs, values))
    if scale == 0:
        return Trend.PLATEAU
    change = 1 + (end - start) / scale
    if (change > HIGHER and _is_no_noise(values, head, start, end)) or _rises_late(values, start):
        return Trend.DIVERGING
    return Trend.CONVERGING if change < LOWER else Trend.PLATEAU


def _is_no_noise(values: Sequence[float], head: int, start: float, end: float) -> bool:
    """Whether the end is above the start, the first `head` values, by more than noise would bring it there.

    It is if the loss jumped for good, if few values climb in order, or if the end is many standard errors
    above the start, and either twice as high or above any level before. Noise whose neighbours are alike is
    no noise in few values.
    """
    count, tail = len(values), max(1, len(values) // 5)
    if count <= MOST_UNKNOWN or _jumps(values) or (count < FEW and _climbs(values)):
        return True
    error = 1.25 * _noise(values) * sqrt(1 / head + 1 / tail)  # Of medians, 1.25 times that of means.
    if end - start <= SURE * error:
        return False
    size = max(2, tail)
    doubled = 0 < BLOW_UP * start < end
    return doubled or count < FEWEST or end > max(map(median, _windows(values[:-size], size)))


def _jumps(values: Sequence[float]) -> bool:
    """Whether at some place all that follows, three values at least, is above twice all that went before."""
    lowest = list(accumulate(reversed(values), min))[::-1]
    highest = accumulate(values, max)
    return any(0 < BLOW_UP * high < low for high, low in zip(highest, lowest[1:-2], strict=False))


def _climbs(values: Sequence[float]) -> bool:
    """Whether the values rise in order but for few pairs: Kendall's test, which needs no measure of noise."""
    count = len(values)
    rising = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    return rising - 1 > IN_ORDER * sqrt(count * (count - 1) * (2 * count + 5) / 18)


def _noise(values: Sequence[float]) -> float:
    """The standard deviation of the values about their course: of the calmer half, where halves show it."""
    found = []
    for apart in (1, 2):
        gaps = [abs(b - a) for a, b in zip(values, values[apart:], strict=False)]
        half = len(gaps) // 2
        few = len(values) < FEW
        found.append(median(gaps) if few else min(median(gaps[:half]), median(gaps[half:])))
    # Where neighbours are alike, those two apart differ more; of a steady rise they differ twice as much.
    return max(found[0], min(found[1], 1.3 * found[0])) / NOISE_OF_DISTANCE


def _windows(values: Sequence[float], size: int) -> list[Sequence[float]]:
    return [values[at : at + size] for at in range(0, len(values) - size + 1, size)]


def _rises_late(values: Sequence[float], start: float) -> bool:
    """Whether the loss had fallen, and its last tenth is all above its lowest window, by more than noise.

    Windows are a tenth of the values, at least three. The rise must be a quarter of the lowest level, a
    fifth of what the loss had gained until then, four times the usual distance of two neighbours, and three
    times the largest rise of one window over the one before it while the loss still fell.
    """
    if len(values) < FEWEST:
        return False
    size = max(3, len(values) // 10)
    tail = values[-size:]
    windows = _windows(values[:-size], size)
    levels = [median(window) for window in windows]
    at = min(range(len(levels)), key=levels.__getitem__)
    low = levels[at]
    rise = median(tail) - low
    noise = median(abs(b - a) for a, b in pairwise(values))
    wandering = max((b - a for a, b in pairwise(levels[: at + 1])), default=0.0)
    return (
        at > 0
        and (start <= 0 or low < LOWER * start)
        and min(tail) > max(windows[at])
        and rise > (HIGHER - 1) * abs(low)
        and rise > GIVEN_BACK * (start - low)
        and rise > BEYOND_NOISE * noise
        and rise > BEYOND_WANDERING * wandering
    )
