"""Everything that `gpudebug analyze` says of a section report, as JSON shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpudebug.core.inside.sections.categories import category_of, category_shares
from gpudebug.core.inside.sections.cost import profiled_s, recommendations, score, share
from gpudebug.core.inside.sections.report import Node, Report

BOTTLENECKS = 10
# What taking the profiler's own time off a call may be wrong by.
_CLOCKS_S = 1e-6


def analysis(report: Report) -> dict[str, Any]:
    """Seconds; `_mb` is 2**20 bytes; shares 0 to 1 of `profiled_s`; scores 0 to 100. None is not known.

    `sections` are by total time, `bottlenecks` the names with the highest scores.
    """
    profiled = profiled_s(report)
    rows: list[dict[str, Any]] = []
    for section in sorted(report.sections, key=lambda s: (-s.total_s, s.name)):
        part = share(section, profiled)
        figures = {**asdict(section), "category": category_of(section, report)}
        rows.append({**figures, "share": part, "score": score(section, part)})
    worst = sorted(rows, key=lambda r: (-r["score"], r["name"]))[:BOTTLENECKS]
    return {
        "profiled_s": profiled,
        "wall_s": report.wall_s,
        "processes": report.processes,
        "rank": report.rank,
        "iterations": report.iterations,
        "iterations_per_s": report.iterations_per_s,
        "warmup": report.warmup,
        "sync": report.sync,
        "capped": report.capped,
        "open": list(report.open),
        "sections": rows,
        "bottlenecks": [r["name"] for r in worst],
        "recommendations": [
            {"level": str(r.level), "section": r.section, "text": r.text} for r in recommendations(report)
        ],
        "categories": [asdict(c) for c in category_shares(report)],
        "tree": [_node(n) for n in report.tree],
        "notes": [*report.notes, *remarks(report)],
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "calls": node.calls,
        "total_s": node.total_s,
        "children": [_node(child) for child in node.children],
    }


def remarks(report: Report) -> list[str]:
    """What has to be known to read the figures, beside what the report notes of itself."""
    lines = []
    if not report.sections and not report.notes:
        lines.append("no section was timed: was profiling enabled, and did the code get there?")
    if any(s.gpu_peak_mb for s in report.sections) and not report.sync:
        lines.append("sections end when a GPU's work is queued, not when it is done: give the profiler sync=")
    if report.open:
        lines.append(f"still open at the end: {_named(report.open)}")
    beyond = _overfull(report.tree)
    if beyond:
        lines.append(
            f"what ran inside {_named(beyond)} adds up to more than it took (tasks at the same time, or "
            "recursion): shares of the whole time end at 100%"
        )
    failed = [f"{s.name!r} ({s.errors})" for s in report.sections if s.errors]
    if failed:
        lines.append(f"ended by an exception: {_listed(failed)}")
    return lines


def _overfull(tree: Sequence[Node]) -> list[str]:
    """Sections whose children took longer than they did, beyond what rounding and clocks explain."""
    found: dict[str, None] = {}
    waiting = list(tree)
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if math.fsum(child.total_s for child in node.children) > 1.01 * node.total_s + _CLOCKS_S * node.calls:
            found[node.name] = None
    return list(found)


def _named(names: Sequence[str]) -> str:
    return _listed([repr(name) for name in names])


def _listed(items: Sequence[str], most: int = 5) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
