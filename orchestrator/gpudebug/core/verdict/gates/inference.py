"""Whether a program only infers: it prints latencies, trains nothing, and so has no loss to be judged by."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence

NO_LOSS = "no loss is printed: judged by latency alone"


def infers(runs: Sequence[Evidence]) -> bool:
    """Tell whether each of these runs printed latencies, no loss, and made no step of an optimizer."""
    return bool(runs) and all(map(_infers, runs))


def _infers(e: Evidence) -> bool:
    steps = e.steps or (e.probe.steps if e.probe else None)
    return e.latency is not None and not e.loss.points and not steps
