"""Whether runs made too few steps for any cause to rest on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.records import Evidence
from gpudebug.core.words import counted

FEW_STEPS = 10
"""Iterations of which no share is worth believing (knowledge of the field: profiles of fewer are empty)."""
SLOW_S = 10.0
"""Slower ones that took so long, by their rate, show where the time goes all the same."""
_READ = {"steps", "steps_per_s", "step_unit", "first_count", "last_count", "first_step_s", "latency", "probe"}


def too_few(runs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return how many steps these runs show together, and when the first one came; None if they are enough,
    or if nothing counts them."""
    counts = [(_made(e), e.get("steps_per_s")) for e in runs]
    made = sum(count for count, _ in counts)
    took = sum(count / rate for count, rate in counts if rate)
    if not made or made >= FEW_STEPS or took >= SLOW_S or any(e.get("latency") for e in runs):
        return None
    first = min((s for e in runs if (s := e.get("first_step_s")) is not None), default=None)
    came = f", the first at {first:.1f} s" if first is not None else ""
    where = f" in {len(runs)} runs" if len(runs) > 1 else ""
    were = "was" if made == 1 else "were"
    return f"too short: {counted(made, 'step')} {were} seen{where}{came}, and a cause needs {FEW_STEPS}"


def too_few_in(evidence: Evidence) -> str | None:
    """Return the same of one run."""
    return too_few([evidence.model_dump(mode="json", include=_READ)])


def _made(e: Mapping[str, Any]) -> int:
    """Return the more of what log and probe counted in a run, 0 if neither did."""
    probed = (e.get("probe") or {}).get("steps") or 0
    return max(probed, _printed(e)) if e.get("step_unit") in (None, "step") else probed


def _printed(e: Mapping[str, Any]) -> int:
    """By the log; of a run that goes on from a checkpoint what it printed itself."""
    steps, first, last = e.get("steps") or 0, e.get("first_count"), e.get("last_count")
    span = last - first if first is not None and last is not None else 0
    return span + 1 if first is not None and 0 < span < first else steps
