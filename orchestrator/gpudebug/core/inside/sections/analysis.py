"""Everything that `gpudebug analyze` says of a section report, as JSON shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from gpudebug.core.answers.sections import ScoredSection, SectionAdvice, SectionNode, SectionsAnswer
from gpudebug.core.inside.sections.categories import category_of, category_shares
from gpudebug.core.inside.sections.cost import profiled_s, recommendations, score, share
from gpudebug.core.inside.sections.report import Report

BOTTLENECKS = 10
# What taking the profiler's own time off a call may be wrong by.
_CLOCKS_S = 1e-6


def analysis(report: Report, file: str) -> SectionsAnswer:
    """Return what a report says, or several merged ones; `file` names where it is from."""
    profiled = profiled_s(report)
    rows = []
    for section in sorted(report.sections, key=lambda s: (-s.total_s, s.name)):
        part = share(section, profiled)
        figures = {**asdict(section), "category": category_of(section, report)}
        rows.append(ScoredSection(**figures, share=part, score=score(section, part)))
    worst = sorted(rows, key=lambda r: (-r.score, r.name))[:BOTTLENECKS]
    advice = recommendations(report)
    return SectionsAnswer(
        file=file,
        profiled_s=profiled,
        wall_s=report.wall_s,
        processes=report.processes,
        rank=report.rank,
        iterations=report.iterations,
        iterations_per_s=report.iterations_per_s,
        warmup=report.warmup,
        sync=report.sync,
        capped=report.capped,
        open=report.open,
        sections=tuple(rows),
        bottlenecks=tuple(r.name for r in worst),
        recommendations=tuple(
            SectionAdvice(level=str(r.level), section=r.section, text=r.text) for r in advice
        ),
        categories=tuple(category_shares(report)),
        tree=report.tree,
        notes=(*report.notes, *remarks(report)),
    )


def remarks(report: Report) -> list[str]:
    """Return what has to be known to read the figures, beside what the report notes of itself."""
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


def _overfull(tree: Sequence[SectionNode]) -> list[str]:
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
