"""What a section costs: its share of the time, its score, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpudebug.core.answers.sections import Section, SectionNode
from gpudebug.core.inside.sections import hints
from gpudebug.core.inside.sections.report import Report
from gpudebug.core.words import Word

# The weights, what makes a part of the score full, and what is named, are those of the profiling system
# that this one replaces: 40 % time share, 30 % time a call, 15 % memory of host and device each.
TIME_WEIGHT, CALL_WEIGHT, MEMORY_WEIGHT = 40.0, 30.0, 15.0
CRITICAL_SHARE = 0.30
SLOW_S = 0.1
LARGE_MB = 100.0
# A section below that takes this much of the one above is where to look.
_WORTH = 0.25


class AdviceLevel(Word):
    """What a recommendation is about, the most pressing first."""

    CRITICAL = "CRITICAL"
    SLOW = "SLOW"
    MEMORY = "MEMORY"
    GPU_MEMORY = "GPU MEMORY"


@dataclass(frozen=True, slots=True)
class Recommendation:
    level: AdviceLevel
    section: str
    text: str


def profiled_s(report: Report) -> float:
    """Return the time that was profiled: that of the tree's roots; without a tree, own times, else totals."""
    if report.parts_s is not None:
        return report.parts_s
    sums = (
        math.fsum(n.total_s for n in report.tree),
        math.fsum(s.self_s for s in report.sections),
        math.fsum(s.total_s for s in report.sections),
    )
    return next((s for s in sums if s > 0), 0.0)


def share(section: Section, profiled: float) -> float:
    """0 to 1 of the profiled time."""
    return min(section.total_s / profiled, 1.0) if profiled > 0 else 0.0


def score(section: Section, share: float) -> float:
    """0 to 100; memory that was not measured adds nothing."""
    return (
        TIME_WEIGHT * share
        + CALL_WEIGHT * min(section.mean_s / SLOW_S, 1.0)
        + MEMORY_WEIGHT * min((section.mem_peak_mb or 0.0) / LARGE_MB, 1.0)
        + MEMORY_WEIGHT * min((section.gpu_peak_mb or 0.0) / LARGE_MB, 1.0)
    )


def recommendations(report: Report) -> list[Recommendation]:
    """Return what stands out, by level, in each the most expensive first."""
    profiled = profiled_s(report)
    below = _below(report.tree)
    found = [
        r
        for section in sorted(report.sections, key=lambda s: (-s.total_s, s.name))
        for r in _of(section, share(section, profiled), below.get(section.name, {}))
    ]
    order = list(AdviceLevel)
    return sorted(found, key=lambda r: order.index(r.level))


def _of(section: Section, share: float, below: Mapping[str, float]) -> Iterator[Recommendation]:
    hint = hints.hint(section.name)
    inside = _inside(section, below)
    if share > CRITICAL_SHARE:
        advice = inside or hint or "split it into sections to see what in it takes so long"
        yield Recommendation(
            AdviceLevel.CRITICAL, section.name, f"takes {100 * share:.1f}% of the time: {advice}"
        )
        hint = None
    if section.mean_s > SLOW_S:
        advice = inside or hint or "do its work less often, in a worker, in batches or on the GPU"
        times = "once" if section.calls == 1 else f"{section.calls} times"
        text = f"takes {1000 * section.mean_s:.0f} ms a call, {times}: {advice}"
        yield Recommendation(AdviceLevel.SLOW, section.name, text)
    if (section.mem_peak_mb or 0.0) > LARGE_MB:
        text = f"peaks at {section.mem_peak_mb:.0f} MB: allocate buffers once and reuse them, avoid copies"
        yield Recommendation(AdviceLevel.MEMORY, section.name, text)
    if (section.gpu_peak_mb or 0.0) > LARGE_MB:
        text = (
            f"peaks at {section.gpu_peak_mb:.0f} MB of device memory: free what is not needed, use mixed "
            "precision, or recompute activations"
        )
        yield Recommendation(AdviceLevel.GPU_MEMORY, section.name, text)


def _inside(section: Section, below: Mapping[str, float]) -> str | None:
    """Return where most of its time goes to a section below it, that one."""
    if not below or section.total_s <= 0:
        return None
    name = max(below, key=lambda n: below[n])
    part = min(below[name] / section.total_s, 1.0)
    return f"{100 * part:.0f}% of that in {name!r}, look there first" if part >= _WORTH else None


def _below(tree: tuple[SectionNode, ...]) -> dict[str, dict[str, float]]:
    """Sum the seconds of the sections directly below each section, wherever it is in the tree."""
    found: dict[str, dict[str, float]] = {}
    waiting = list(tree)
    while waiting:
        node = waiting.pop()
        waiting += node.children
        for child in node.children:
            if child.name != node.name:
                times = found.setdefault(node.name, {})
                times[child.name] = times.get(child.name, 0.0) + child.total_s
    return found
