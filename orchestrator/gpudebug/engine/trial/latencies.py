"""Notes for a campaign of latencies: how many its runs printed, and what would be enough."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates.enough import LATENCIES, latency_total
from gpudebug.core.words import counted


def more_requests(metric: Metric, runs: Sequence[Evidence]) -> str | None:
    """What would make these runs' latencies enough; None if the metric is of something else."""
    if not metric.latency:
        return None
    seen = latency_total(metric, runs)
    if not seen:
        return f"print each latency with its unit, at least {LATENCIES} over the runs"
    return f"send {LATENCIES / seen:.1f} times as many requests a run, or print the latency of each"


def too_few(metric: Metric, runs: Sequence[Evidence]) -> str | None:
    """Say of a baseline that is short of latencies how many it has; None if it has none, or enough."""
    seen = latency_total(metric, runs)
    if not 0 < seen < LATENCIES:
        return None
    count = counted(len(runs), "run")
    return f"{count} printed {seen} latencies, {LATENCIES} are needed; {more_requests(metric, runs)}"
