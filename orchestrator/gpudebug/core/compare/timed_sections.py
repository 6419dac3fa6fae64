"""The throughput of runs that report nothing but sections of their own code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.records import Evidence, SectionFigures

FEWEST_CALLS = 10
"""Fewer calls tell little beside start-up and noise."""


class SectionRates(NamedTuple):
    """Calls a second of one section, by run of each side."""

    section: str
    a: tuple[float, ...]
    b: tuple[float, ...]


def rates(a: Sequence[Evidence], b: Sequence[Evidence]) -> SectionRates | None:
    """Of the section that all runs called often and spent the most time in; None if there is none.

    A section that encloses others wins over these: it is the iteration.
    """
    runs = [_often(e) for e in (*a, *b)]
    if not runs or not all(runs):
        return None
    shared = [name for name in runs[0] if all(name in run for run in runs)]
    name = max(shared, key=lambda n: min(run[n].share for run in runs), default=None)
    if name is None:
        return None
    found = tuple(1 / run[name].mean_s for run in runs)
    return SectionRates(name, found[: len(a)], found[len(a) :])


def _often(e: Evidence) -> dict[str, SectionFigures]:
    sections = e.sections.sections if e.sections else ()
    return {s.name: s for s in sections if s.calls >= FEWEST_CALLS and s.mean_s > 0}
