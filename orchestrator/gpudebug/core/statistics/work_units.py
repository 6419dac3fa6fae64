"""The choice of a unit of work among what runs count, as plain values: `status` makes it without records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.words import LOG, WorkName

AUTO = "auto"


class CountedRate(NamedTuple):
    """What a run processed a second, and what says so."""

    unit: str
    source: str
    per_s: float


class PickedUnit(NamedTuple):
    """The unit and the source that all runs have, with the rate of each run."""

    unit: str
    source: str
    rates: tuple[float, ...]

    @property
    def per_s(self) -> float:
        """The mean of the runs."""
        return sum(self.rates) / len(self.rates)


def pick(runs: Sequence[Sequence[CountedRate]], configured: str = AUTO) -> PickedUnit | None:
    """Return the first unit, and source of it, of the first run that all runs have; None if there is none.

    `configured` is a unit by its full name: then no other is taken. The user's own patterns are taken only
    if they are asked for.
    """
    for one in runs[0] if runs else ():
        if one.unit.startswith(LOG) if configured == AUTO else one.unit != configured:
            continue
        found = [rate for run in runs if (rate := rate_of(run, one.unit, one.source)) is not None]
        if len(found) == len(runs):
            return PickedUnit(one.unit, one.source, tuple(found))
    return None


def rate_of(run: Sequence[CountedRate], unit: str, source: str) -> float | None:
    """Return what a run processed a second by this source; None if it does not say."""
    return next((one.per_s for one in run if one.unit == unit and one.source == source), None)


def recorded(evidence: Mapping[str, Any]) -> list[CountedRate]:
    """Return the candidates in evidence.json as it was read."""
    return [CountedRate(one["unit"], one["source"], one["per_s"]) for one in evidence.get("work") or ()]


def text(unit: str, source: str, chosen: bool = True) -> str:
    """`environment steps, from total_timesteps`; marked if a person has set it."""
    return f"{unit}, from {source}" + ("" if chosen else " (set)")


def rate_for(unit: str | None) -> str:
    """Return the metric that counts what gets done, of a baseline that counts `unit` as work."""
    return f"work_per_s ({unit})" if unit not in {None, WorkName.OPTIMIZER_STEPS} else "steps_per_s"
