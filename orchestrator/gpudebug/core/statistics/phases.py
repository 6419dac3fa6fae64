"""The phases of runs: each by its name, with the mean of its figures over the runs that show it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.answer import PhaseFigures
from gpudebug.core.records import Evidence, PhaseEvidence
from gpudebug.core.statistics import numbers

_FIGURES = (
    "window",
    "window_reason",
    "utilisation",
    "standard_error",
    "steps_per_s",
    "steps_by",
    "progress_per_s",
    "samples_per_s",
    "step_time_p50_s",
    "step_time_p95_s",
    "joules_per_step",
    "logged",
    "work",
)


def names(*runs: Sequence[PhaseEvidence]) -> list[str]:
    """Return the names of the phases of runs, in the order in which they began."""
    return list(dict.fromkeys(one.name for phases in runs for one in phases))


def in_phase(e: Evidence, name: str) -> Evidence | None:
    """Return a run as it was in one phase; None if it did not come to it.

    What is of the run's own window alone, and what the training process reported in it, is left out.
    """
    phase = next((one for one in e.phases if one.is_named(name)), None)
    if phase is None:
        return None
    unknown = {"latency": None, "sections": None, "stacks": None, "probe": None}
    return e.model_copy(update={**unknown, **{name: getattr(phase, name) for name in _FIGURES}})


def phases_in(facts: Mapping[str, Any]) -> tuple[PhaseEvidence, ...]:
    """Return the phases of evidence.json as it was read; none of an earlier version's."""
    return tuple(PhaseEvidence.model_validate(one) for one in facts.get("phases") or ())


def figures(runs: Sequence[Sequence[PhaseEvidence]], unit: str | None) -> tuple[PhaseFigures, ...]:
    """Return each phase's figures, of runs whose log counts `unit`; nothing of runs in one phase."""
    known = names(*runs)
    return tuple(_figures(name, runs, unit) for name in known) if len(known) > 1 else ()


def _figures(name: str, runs: Sequence[Sequence[PhaseEvidence]], unit: str | None) -> PhaseFigures:
    found = [one for phases in runs for one in phases if one.name == name]
    rates = [rate for one in found if (rate := one.progress_per_s or one.steps_per_s)]
    reason = next((one.window_reason for one in found if one.window_reason), None)
    util = [one.utilisation for one in found if one.utilisation is not None]
    return PhaseFigures(
        name=name,
        by=found[0].by,
        runs=len(found),
        start_s=_mean([one.start_s for one in found]) or 0.0,
        seconds=_mean([one.seconds for one in found]) or 0.0,
        stretches=max(one.stretches for one in found),
        gpu_util=_mean(util),
        rate=math.exp(math.fsum(map(math.log, rates)) / len(rates)) if rates else None,
        rate_unit=unit or "step",
        reason=reason if not util and not rates else None,
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def text(one: PhaseFigures) -> str:
    """`supervised: 15.6 s from 14.2 s on, gpu_util 3.6%, 19.4 steps/s`."""
    times = f" in {one.stretches} stretches" if one.stretches > 1 else ""
    span = f"{numbers.duration(one.seconds)}{times} from {numbers.duration(one.start_s)} on"
    if one.reason is not None:
        return f"{one.name}: {span}, unknown: {one.reason}"
    return f"{one.name}: {span}, gpu_util {numbers.percent(one.gpu_util)}, " + numbers.rate(
        one.rate, one.rate_unit
    )
