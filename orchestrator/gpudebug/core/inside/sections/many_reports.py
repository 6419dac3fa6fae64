"""Several section reports, of ranks or of runs, as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from gpudebug.core.answers.sections import Section, SectionNode
from gpudebug.core.inside.sections.cost import profiled_s
from gpudebug.core.inside.sections.report import MeasuredOn, Report

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
