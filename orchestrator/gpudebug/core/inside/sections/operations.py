"""Reports of the profiler that counts operations: `{"timestamp", "summary": {"operations": {NAME: …}}}`.

It has no tree: shares are of the sum of all operations, as that profiler's own analysis has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTE = "the report has no tree: shares are of the sum of all sections, also of those that enclose others"
_MEMORY = {"mem_peak_mb": "memory_peak_mb", "gpu_peak_mb": "gpu_memory_peak_mb"}
_TIMES = {"total_s": "total_time", "mean_s": "avg_time", "min_s": "min_time", "max_s": "max_time"}


def operations_of(found: object) -> Mapping[str, Any] | None:
    """Return the operations of such a report by their names; None for any other document."""
    summary = found.get("summary") if isinstance(found, dict) else None
    inner = summary if isinstance(summary, dict) else found
    operations = inner.get("operations") if isinstance(inner, dict) else None
    return operations if isinstance(operations, dict) else None


def as_entry(name: str, figures: object) -> tuple[dict[str, Any], str | None]:
    """(a section as our own reports have it, the figure that is missing or None).

    A peak of 0 was not measured or not raised: unknown.
    """
    if not isinstance(figures, dict):
        return {"name": name}, "call_count"
    calls = figures.get("call_count")
    if calls == 0:
        return {"name": name, "calls": 0}, None
    entry: dict[str, Any] = {"name": name, "calls": calls}
    entry |= {ours: figures.get(theirs) for ours, theirs in _TIMES.items()}
    entry |= {ours: figures.get(theirs) or None for ours, theirs in _MEMORY.items()}
    entry["self_s"] = entry["total_s"]
    missing = (theirs for ours, theirs in {"calls": "call_count", **_TIMES}.items() if entry[ours] is None)
    return entry, next(missing, None)
