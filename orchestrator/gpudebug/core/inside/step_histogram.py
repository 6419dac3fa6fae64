"""How long steps took, as the bars of a histogram: times in buckets of equal width on the log scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gpudebug.core.inside.probe.spans import BUCKETS_AN_OCTAVE, SHORTEST_S

MOST = 48
"""Bars of one histogram."""
_LEAST_COUNT = 0.05


def counted(seconds: Iterable[float]) -> dict[int, float]:
    """Count steps by the bucket of their time, as the probe does; a time of 0 or less does not count."""
    found: dict[int, float] = {}
    for value in seconds:
        if value > 0 and math.isfinite(value):
            bucket = math.floor(BUCKETS_AN_OCTAVE * math.log2(value / SHORTEST_S))
            found[bucket] = found.get(bucket, 0.0) + 1
    return found


def bars(buckets: Mapping[int, float]) -> list[tuple[float, float, float]]:
    """(from, to, count) of at most 48 bars, seconds, in ascending order, without empty ones.

    Neighbouring buckets are put together until there are few enough.
    """
    known = {bucket: count for bucket, count in buckets.items() if count > 0}
    if not known:
        return []
    width = 1
    while max(known) // width - min(known) // width >= MOST:
        width *= 2
    joined: dict[int, float] = {}
    for bucket, count in known.items():
        joined[bucket // width] = joined.get(bucket // width, 0.0) + count
    return [
        (_edge(at * width), _edge((at + 1) * width), round(count, 1))
        for at, count in sorted(joined.items())
        if count >= _LEAST_COUNT
    ]


def quantile(found: Sequence[Sequence[float]], share: float) -> float | None:
    """Of bars (from, to, count), as if each were evenly filled; None of nothing."""
    total = sum(count for _, _, count in found)
    left = share * total
    for low, high, count in found:
        if count and left <= count:
            return float(low + (high - low) * left / count)
        left -= count
    return float(found[-1][1]) if total else None


def _edge(bucket: int) -> float:
    return float(f"{SHORTEST_S * 2 ** (bucket / BUCKETS_AN_OCTAVE):.6g}")
