"""One completed run of a comparison: how long it took, what it counts and how much of it a second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpudebug.core.records import Evidence, RunRecord, WorkUnit
from gpudebug.core.trainlog.latency import Latency
from gpudebug.core.verdict import work
from gpudebug.core.verdict.gates.figures import rate_of

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
