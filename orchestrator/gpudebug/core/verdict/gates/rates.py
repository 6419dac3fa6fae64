"""What the runs of both sides got done a second, in steps as their logs count them, or in samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpudebug.core.records import Evidence


@dataclass(frozen=True, slots=True)
class ProgressRates:
    """Progress per second of the runs that have one, all in the same `unit`; None if the units differ.

    Of a unit of work, `source` is what it is read from, and `why` says what is missing instead.
    """

    unit: str | None = None
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    source: str | None = None
    why: str | None = None


def rates_of(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> ProgressRates:
    """Return the runs' and the others' progress per second, if all that have one count the same."""
    runs, others = alike(runs, others), alike(others, runs)
    before, after = [rate_of(e) for e in runs], [rate_of(e) for e in others]
    counted = {(rate[0], probed(e)) for e in (*runs, *others) if (rate := rate_of(e))}
    if len(counted) != 1:
        return ProgressRates()
    return ProgressRates(counted.pop()[0], tuple(r[1] for r in before if r), tuple(r[1] for r in after if r))


def sample_rates(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> ProgressRates:
    """As `rates_of`, in samples, if they have the same source in all runs."""
    every = (*runs, *others)
    if len({e.samples_by for e in every}) != 1 or any(not e.samples_per_s for e in every):
        return ProgressRates()
    before, after = ([e.samples_per_s for e in side if e.samples_per_s] for side in (runs, others))
    return ProgressRates("samples", tuple(before), tuple(after))


def rate_of(e: Evidence) -> tuple[str, float] | None:
    """Return what the run's log counts and how much of it a second."""
    unit = e.step_unit or "step"
    rate = e.progress_per_s or (e.steps_per_s if unit == "step" else None)
    return (unit, rate) if rate else None


def probed(e: Evidence) -> bool:
    """Whether its rate is of steps that the probe counted: if the log counts, one may be another thing."""
    return e.steps_by == "probe" and e.step_unit in (None, "step")


def alike(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> tuple[Evidence, ...]:
    """Return the runs with steps as the probe counted them, if not all logs of these and of the others tell
    them and the probe reported all; else as they are."""
    every = (*runs, *others)
    if len({probed(e) for e in every}) == 1 or not all(_inside(e) for e in every):
        return tuple(runs)
    return tuple(
        e.model_copy(update={"steps_per_s": rate, "progress_per_s": rate, "steps_by": "probe"})
        for e in runs
        if (rate := _inside(e))
    )


def _inside(e: Evidence) -> float | None:
    """Steps per second by the probe, of a run whose log counts nothing else."""
    return e.probe.steps_per_s if e.probe and e.step_unit in (None, "step") else None


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.fsum(values) / len(values) if values else None
