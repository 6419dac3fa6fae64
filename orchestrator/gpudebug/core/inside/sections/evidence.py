"""A run's sections as its evidence keeps them, and those of two sides beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from gpudebug.core.answers.probe import SectionMean, SectionRow
from gpudebug.core.answers.sections import SectionNode
from gpudebug.core.inside.sections.analysis import remarks
from gpudebug.core.inside.sections.categories import category_of
from gpudebug.core.inside.sections.cost import profiled_s, share
from gpudebug.core.inside.sections.report import Report
from gpudebug.core.records import Evidence, SectionFigures, SectionsEvidence

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


def outline(tree: Sequence[SectionNode]) -> list[dict[str, Any]]:
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
