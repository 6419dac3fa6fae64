"""One completed run of a comparison: how long it took, what it counts and how much of it a second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpudebug.core.records import Evidence, RunRecord, SectionFigures, WorkUnit
from gpudebug.core.trainlog.latency import Latency
from gpudebug.core.verdict import work
from gpudebug.core.verdict.gates.figures import rate_of
from gpudebug.core.verdict.run_plan import LEAST_WINDOW_S, RunPlan, as_recorded


def plan(run_for: float | str | None, first: Sequence[Evidence] = ()) -> RunPlan | None:
    """Return the plan of a run; None: it ends by itself. `run_for` as `protocol.run_for`, None for `auto`.

    With `auto` the `first` run of A decides for all, once it is made, and none is ended that counts nothing.
    """
    made = [e.model_dump(mode="json", include={"outcome", "window"}) for e in first]
    found = as_recorded(run_for, made, learns=False)
    return replace(found, counted=True) if found is not None and run_for is None else found


def announced(run_for: float | str | None) -> str | None:
    """Return what is said before the first run; None if nothing is ended."""
    if run_for == "end":
        return None
    ends = plan(run_for)
    if ends is not None and run_for is not None:
        of = f"phase {ends.phase}" if ends.phase is not None else "steady work"
        return f"each run is ended after {ends.window_s:g} s of {of}"
    return (
        f"a run that goes on is ended after {LEAST_WINDOW_S:g} s of steady work, if it counts steps or "
        "latencies; --run-for end lets each end by itself"
    )


def ended(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return a note of which runs were ended."""
    found = [one.planned for one in records if one.planned is not None]
    if not found:
        return ()
    count = f"{len(found)} of {len(records)} runs" if len(found) < len(records) else "each run"
    return (f"gpudebug ended {count} after {found[0].window_s:g} s of steady work (--run-for)",)


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


# A rate over a whole run is believed where at least this much of what it counts fits into the run.
LEAST_STEPS = 2


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One completed run. `variables` are those that its command sets, None if only names are known;
    `asked` is how many steps it asks for."""

    record: RunRecord
    evidence: Evidence
    latency: Latency | None = None
    variables: Mapping[str, str] | None = None
    asked: int | None = None

    @property
    def wall_time(self) -> float | None:
        """Seconds from launch to its end, by gpudebug or itself; None if a clock gave an impossible time."""
        if self.record.planned is not None:
            return self.record.planned.at_s
        found = self.record.duration_s if self.record.duration_s is not None else self.evidence.duration_s
        return found if found is not None and 0 < found < math.inf else None

    @property
    def rate(self) -> tuple[str, float] | None:
        """What its log counts and how much of it a second.

        None if it says nothing, or what cannot be: a number in other output was taken for a rate.
        """
        found = rate_of(self.evidence)
        if found is None or not 0 < found[1] < math.inf:
            return None
        made = found[1] * (self.wall_time or math.inf)
        return found if self.evidence.window or made >= LEAST_STEPS else None

    def rate_in(self, samples: bool, unit: WorkUnit | None = None) -> tuple[str, float] | None:
        """As `rate`; in samples where these are asked for and known, or in a unit of work."""
        if unit is not None:
            return self._work(unit)
        known = self.evidence.samples_per_s
        if samples and known and self.rate and self.rate[0] == "step":
            return "samples", known
        return self.rate

    def _work(self, unit: WorkUnit) -> tuple[str, float] | None:
        found = work.rate(self.evidence, unit.unit, unit.source)
        made = (found or 0.0) * (self.wall_time or math.inf)
        if found is None or not (self.evidence.window or made >= LEAST_STEPS):
            return None
        return unit.unit, found

    @property
    def steps(self) -> int | None:
        """Steps of the optimiser that it made, else those that its command asks for."""
        return (self.evidence.steps if self.rate else None) or self.asked
