"""Section reports as the profiling library writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudebug.core.inside.sections import Section


def section(name: str, calls: int = 100, mean: float = 0.01, **more: Any) -> dict[str, Any]:
    """A section of a report; without more of it, all its time is its own and its memory unknown."""
    return {
        "name": name,
        "category": None,
        "calls": calls,
        "errors": 0,
        "total_s": calls * mean,
        "self_s": calls * mean,
        "mean_s": mean,
        "min_s": mean / 2,
        "max_s": mean * 2,
        "p50_s": mean * 0.9,
        "p95_s": mean * 1.5,
        "mem_peak_mb": None,
        "gpu_peak_mb": None,
        **more,
    }


def node(name: str, calls: int, total: float, *children: dict[str, Any]) -> dict[str, Any]:
    """A place in a report's tree."""
    return {"name": name, "calls": calls, "total_s": total, "children": list(children)}


def report(*sections: dict[str, Any], tree: Sequence[dict[str, Any]] = (), **more: Any) -> dict[str, Any]:
    """A whole report of 100 iterations in 10 s."""
    return {
        "format": "gpudebug-sections",
        "version": 1,
        "pid": 4242,
        "rank": None,
        "python": "3.11.4",
        "wall_s": 12.0,
        "enabled_s": 10.0,
        "warmup": 3,
        "iterations": 100,
        "sync": False,
        "categories": {},
        "capped": 0,
        "open": [],
        "notes": [],
        "sections": list(sections),
        "tree": list(tree),
        **more,
    }


def a_section(name: str = "x", calls: int = 100, mean: float = 0.01, **more: Any) -> Section:
    """The same, as it is read."""
    return Section(**section(name, calls, mean, **more))
