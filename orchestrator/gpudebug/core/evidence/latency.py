"""Latencies as evidence: how long one inference took, by nothing but the latencies that a run printed.

No utilisation window is needed: the warm-up is cut from the latencies themselves, and the interval of a
percentile comes from their order and from how much neighbours are alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from gpudebug.core.records import LatencyEvidence
from gpudebug.core.statistics import intervals
from gpudebug.core.trainlog.latency import PrintedLatencies

FEW_FOR_P95 = 20
"""Of fewer values the 95th percentile is their largest."""
FEW_FOR_P99 = 100
FEW_FOR_ERROR = 20
"""Fewer values than this show no spread of their own."""


def figures(printed: PrintedLatencies, warmup: float | None = None) -> dict[str, Any]:
    """Return the fields of an Evidence that are of latencies, by name."""
    found = latency_evidence(printed, warmup)
    if found is None:
        return {}
    percentiles = {f"latency_{p}_s": getattr(found, f"{p}_s") for p in ("p50", "p95", "p99")}
    return {**percentiles, "latency": found}


def latency_evidence(printed: PrintedLatencies, warmup: float | None = None) -> LatencyEvidence | None:
    """Summarise the latencies of a run; None if none was printed.

    The first ones, slow by compilation, caches or a cold start, are cut by MSER-5; those before a fixed
    `warmup` in seconds since launch are cut too. A printed mean or median without single values has no count.
    """
    values = _after(printed, warmup)
    if not values:
        return _summary(printed)
    steady = sorted(kept := values[intervals.mser5(values) :])
    count = round(printed.count * len(kept) / len(printed.values))
    enough = len(kept) >= FEW_FOR_ERROR
    return LatencyEvidence(
        count=count,
        warmup=printed.count - count,
        first_s=printed.values[0],
        mean_s=math.fsum(kept) / len(kept),
        p50_s=median(kept),
        p95_s=quantile(steady, 0.95) if len(kept) >= FEW_FOR_P95 else None,
        p99_s=quantile(steady, 0.99) if len(kept) >= FEW_FOR_P99 else None,
        p50_error=quantile_error(kept, 0.5) if enough else None,
        p95_error=quantile_error(kept, 0.95) if enough else None,
        p99_error=quantile_error(kept, 0.99) if enough else None,
    )


def _after(printed: PrintedLatencies, warmup: float | None) -> tuple[float, ...]:
    if warmup is None:
        return printed.values
    timed = zip(printed.values, printed.times, strict=True)
    return tuple(value for value, time in timed if time is None or time >= warmup)


def _summary(printed: PrintedLatencies) -> LatencyEvidence | None:
    """Return what the program printed over all of its inferences."""
    known = printed.summary
    if printed.values or not known.keys() & {"mean", "median"}:
        return None
    return LatencyEvidence(mean_s=known.get("mean"), p50_s=known.get("median"))


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the quantile `q` of ascending values, between two of them by their distance."""
    at = min(max(q, 0.0), 1.0) * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def quantile_error(values: Sequence[float], q: float) -> float:
    """Standard error of the logarithm of the quantile `q`, of positive values in their order in time.

    The share of values below a quantile has the variance q (1 - q) / n, with n the count of independent
    values that the series is worth: latencies come in bursts. The quantiles one such error above and below
    are the bounds of its distribution-free interval (David and Nagaraja, *Order Statistics*, section 7.1).
    """
    ordered = sorted(values)
    level = quantile(ordered, q)
    worth = intervals.effective_size([float(value > level) for value in values])
    half = math.sqrt(q * (1 - q) / worth)
    low, high = quantile(ordered, q - half), quantile(ordered, q + half)
    return (math.log(high) - math.log(low)) / 2
