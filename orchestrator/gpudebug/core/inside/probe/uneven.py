"""Steps that are unlike each other: some far above the median, or a part of them that grows with the run."""

from __future__ import annotations

from typing import Any

from gpudebug.core.inside.probe.spans import ProcessSpan, middle, percentile

FEW_STEPS = 5
"""Fewer step times than this have no median worth comparing."""
QUARTERS = 4
GROWS = 1.25
"""From the first quarter of a window to the last, from which a part of a step grows; both later ones are
longer than both earlier ones."""
_APART = 1.05
_COUNTS = 0.05
"""Of a step, from which a part is known well enough."""
STALLED = 1.5
"""A step above so many times the median is stalled: its time beyond the median is lost."""


def stalls(times: dict[int, float], seconds: float) -> dict[str, float | None]:
    """Return the share of the time that steps far above the median take beyond it; one in how many does."""
    counted = sum(times.values())
    median = percentile(times, 0.5) if counted >= FEW_STEPS else None
    if median is None:
        return {}
    long = {bucket: count for bucket, count in times.items() if middle(bucket) > STALLED * median}
    lost = sum(count * (middle(bucket) - median) for bucket, count in long.items())
    every = counted / sum(long.values()) if long else None
    return {"stall_share": min(1.0, lost / seconds), "stall_every_steps": every}


def slowing(span: ProcessSpan) -> dict[str, Any]:
    """Return the share of the time that one part of a step takes beyond what it took in the first quarter,
    where it grows with the run; and that part.

    Neighbours slow all parts of a step: what the part that grew least of the others grew by is theirs.
    """
    quarters = [_parts_of_a_step(q) for q in span.parts(QUARTERS) if q.steps >= FEW_STEPS]
    if len(quarters) < QUARTERS:
        return {}
    whole = sum(quarters[0].values())
    known = [part for part, took in quarters[0].items() if took >= _COUNTS * whole]
    grown = max(known, key=lambda part: quarters[-1][part] / quarters[0][part], default=None)
    if grown is None or len(known) == 1:
        return {}
    times = [
        q[grown] / max(1.0, min(q[part] / quarters[0][part] for part in known if part != grown))
        for q in quarters
    ]
    early, late = times[: QUARTERS // 2], times[QUARTERS // 2 :]
    # Once is no growth: the queue of a loader that was full at the start drains.
    if min(late) < _APART * max(early) or times[-1] < GROWS * times[0]:
        return {"slowing_share": 0.0}
    share = sum(max(0.0, t - times[0]) / sum(q.values()) for q, t in zip(quarters, times, strict=True))
    return {"slowing_share": share / QUARTERS, "slowing_part": grown}


def _parts_of_a_step(span: ProcessSpan) -> dict[str, float]:
    """Seconds of each phase in a step; `other` is the rest."""
    names = ("data", "forward", "backward", "optimizer")
    parts = {name: (span.delta(f"{name}_s") or 0.0) / span.steps for name in names}
    return {**parts, "other": max(0.0, span.seconds / span.steps - sum(parts.values()))}
