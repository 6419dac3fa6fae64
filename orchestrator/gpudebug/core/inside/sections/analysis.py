"""What section reports say: of one, of several ranks or runs as one, and as a run's evidence keeps it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias, TypeVar, cast

from gpudebug.core.answers.sections import ScoredSection, Section, SectionNode, SectionsAnswer
from gpudebug.core.answers.show import SectionMean, SectionRow
from gpudebug.core.inside.sections.cost import (
    MeasuredOn,
    Report,
    category_of,
    category_shares,
    profiled_s,
    recommendations,
    score,
    share,
)
from gpudebug.core.records import Evidence, SectionFigures, SectionsEvidence

BOTTLENECKS = 10
# What taking the profiler's own time off a call may be wrong by.
_CLOCKS_S = 1e-6


def summed_up(report: Report, file: str) -> SectionsAnswer:
    """Return what a report says, or several merged ones; `file` names where it is from."""
    profiled = profiled_s(report)
    rows = []
    for section in sorted(report.sections, key=lambda s: (-s.total_s, s.name)):
        part = share(section, profiled)
        figures = {**asdict(section), "category": category_of(section, report)}
        rows.append(ScoredSection(**figures, share=part, score=score(section, part)))
    worst = sorted(rows, key=lambda r: (-r.score, r.name))[:BOTTLENECKS]
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
        recommendations=tuple(recommendations(report)),
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


Facts: TypeAlias = "Mapping[str, Any]"

KEPT = 40
OUTLINE = 60
_LONGEST_NAME = 200


def sections_evidence(report: Report, notes: Sequence[str] = ()) -> SectionsEvidence:
    """Return the sections with the most time, as evidence.json holds them."""
    profiled = profiled_s(report)
    kept = sorted(report.sections, key=lambda s: (-s.total_s, s.name))[:KEPT]
    return SectionsEvidence(
        count=len(report.sections),
        profiled_s=profiled,
        sections=tuple(
            SectionFigures.model_validate(
                {
                    **asdict(s),
                    "name": s.name[:_LONGEST_NAME],
                    "category": category_of(s, report),
                    "share": share(s, profiled),
                }
            )
            for s in kept
        ),
        notes=(*report.notes, *remarks(report), *notes),
    )


def unreadable(why: str) -> SectionsEvidence:
    """Return the evidence of a run whose report is broken: only that it is."""
    return SectionsEvidence(count=0, profiled_s=0.0, notes=(why,))


def outline(tree: Sequence[SectionNode]) -> list[dict[str, object]]:
    """Return a report's tree in lines, those with the most time first, each above what was entered from it:
    `depth`, `name`, `calls`, `total_s`, and `own_s`, what is not in the lines below. The first 60."""
    lines: list[dict[str, Any]] = []
    waiting = [(0, node) for node in _smallest_first(tree)]
    while waiting and len(lines) < OUTLINE:
        depth, node = waiting.pop()
        own = max(0.0, node.total_s - math.fsum(child.total_s for child in node.children))
        facts = {"calls": node.calls, "total_s": node.total_s, "own_s": own}
        lines.append({"depth": depth, "name": node.name[:_LONGEST_NAME], **facts})
        waiting += [(depth + 1, child) for child in _smallest_first(node.children)]
    return lines


def _smallest_first(nodes: Sequence[SectionNode]) -> list[SectionNode]:
    return sorted(nodes, key=lambda n: (n.total_s, n.name))


def beside(a: Sequence[Evidence | Facts], b: Sequence[Evidence | Facts]) -> tuple[SectionRow, ...]:
    """Sections of both sides' runs, those with the greatest share first: per side the mean over its runs.

    A run is its Evidence, or evidence.json as it was read.
    """
    sides = [_means(runs) for runs in (a, b)]
    names = dict.fromkeys((*sides[0], *sides[1]))
    rows = []
    for name in sorted(names, key=lambda n: (-max(s[n].share for s in sides if n in s), n)):
        first, second = (side.get(name) for side in sides)
        ratio = first.mean_s / second.mean_s if first and second and second.mean_s > 0 else None
        rows.append(SectionRow(name=name, a=first, b=second, ratio=ratio))
    return tuple(rows)


def _means(runs: Sequence[Evidence | Facts]) -> dict[str, SectionMean]:
    by_name: dict[str, list[Facts]] = {}
    for run in runs:
        facts = run.model_dump(include={"sections"}) if isinstance(run, Evidence) else run
        for section in (facts.get("sections") or {}).get("sections", ()):
            by_name.setdefault(section["name"], []).append(section)
    return {
        name: SectionMean(
            **{key: math.fsum(s[key] for s in found) / len(found) for key in ("mean_s", "share")}
        )
        for name, found in by_name.items()
        if len(found) == len(runs)
    }


_Number = TypeVar("_Number", int, float)
ESTIMATED = "p50 and p95 are estimates: of sections in several reports, the mean of theirs, weighted by calls"


def merge(reports: Sequence[Report]) -> Report:
    """One report of all. Calls, times, iterations and errors add up, least and most are the extremes.

    A mean is that of all calls. The percentiles of several reports are not known from theirs: what is
    for them is the mean weighted by calls, which like the true one lies between the least and the greatest
    of theirs; None if one of them lacks it. `enabled_s` adds up too, so that iterations a second are
    those of one process.
    """
    if len(reports) == 1:
        return reports[0]
    names = dict.fromkeys(s.name for r in reports for s in r.sections)
    parts: dict[str, list[Section]] = {name: [] for name in names}
    for section in (s for r in reports for s in r.sections):
        parts[section.name].append(section)
    notes = dict.fromkeys(note for r in reports for note in r.notes)
    if any(len(same) > 1 for same in parts.values()):
        notes[ESTIMATED] = None
    ranks, pythons = ({getattr(r, key) for r in reports} for key in ("rank", "python"))
    return Report(
        sections=tuple(_section(same) for same in parts.values()),
        tree=_nodes([r.tree for r in reports]),
        rank=ranks.pop() if len(ranks) == 1 else None,
        python=pythons.pop() if len(pythons) == 1 else None,
        surroundings=_surroundings(reports),
        wall_s=_added(r.wall_s for r in reports),
        enabled_s=_added(r.enabled_s for r in reports),
        warmup=max(r.warmup for r in reports),
        iterations=_added(r.iterations for r in reports),
        sync=all(r.sync for r in reports),
        categories={prefix: name for r in reports for prefix, name in r.categories.items()},
        capped=max(r.capped for r in reports),
        open=tuple(dict.fromkeys(name for r in reports for name in r.open)),
        notes=tuple(notes),
        processes=sum(r.processes for r in reports),
        parts_s=math.fsum(profiled_s(r) for r in reports),
    )


def _surroundings(reports: Sequence[Report]) -> MeasuredOn:
    """Return those that all have in common; of ranks the devices and cores may differ."""
    first = reports[0].surroundings
    alike = all(r.surroundings == first for r in reports)
    return first if alike else MeasuredOn()


def _section(same: Sequence[Section]) -> Section:
    if len(same) == 1:
        return same[0]
    calls = sum(s.calls for s in same)
    return Section(
        name=same[0].name,
        calls=calls,
        total_s=math.fsum(s.total_s for s in same),
        self_s=math.fsum(s.self_s for s in same),
        mean_s=_weighted(same, [s.mean_s for s in same]) or 0.0,
        min_s=min(s.min_s for s in same),
        max_s=max(s.max_s for s in same),
        p50_s=_weighted(same, [s.p50_s for s in same]),
        p95_s=_weighted(same, [s.p95_s for s in same]),
        errors=sum(s.errors for s in same),
        category=next((s.category for s in same if s.category), None),
        mem_peak_mb=max((s.mem_peak_mb for s in same if s.mem_peak_mb is not None), default=None),
        gpu_peak_mb=max((s.gpu_peak_mb for s in same if s.gpu_peak_mb is not None), default=None),
    )


def _weighted(same: Sequence[Section], values: Sequence[float | None]) -> float | None:
    """Return the mean, weighted by calls, kept between its parts against rounding; None if one is unknown."""
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return None
    mean = math.fsum(v * (s.calls / sum(t.calls for t in same)) for v, s in zip(known, same, strict=True))
    return min(max(mean, min(known)), max(known))


def _nodes(levels: Sequence[Sequence[SectionNode]]) -> tuple[SectionNode, ...]:
    """Trees put on top of each other: what has the same name below the same sections is one."""
    same: dict[str, list[SectionNode]] = {}
    for node in (n for level in levels for n in level):
        same.setdefault(node.name, []).append(node)
    return tuple(
        SectionNode(
            name,
            sum(n.calls for n in nodes),
            math.fsum(n.total_s for n in nodes),
            _nodes([n.children for n in nodes]),
        )
        for name, nodes in same.items()
    )


def _added(values: Iterable[_Number | None]) -> _Number | None:
    """Return the sum; None if one is unknown."""
    total: Any = 0
    for value in values:
        if value is None:
            return None
        total += value
    return cast("_Number", total)
