"""The units of work and of learning of a campaign: chosen once from its baseline, and every run in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from gpudebug.core.records import Evidence, LearningSeries, LearningUnit, Terms, WorkUnit
from gpudebug.core.statistics import units
from gpudebug.core.statistics.units import (
    AUTO,
    HIGHER,
    MIN_POINTS,
    CountedRate,
    LearningFigure,
    LearningOfRun,
)
from gpudebug.core.words import Trend


def terms_by(terms: Terms, recorded: Sequence[Evidence]) -> Terms:
    """Return what a trial is judged by: `terms` with the unit of work and the figure of learning that the
    `recorded` runs of its baseline show.

    What was asked for stays in them, so that what is stored comes out again.
    """
    unit = terms.work.unit if terms.work is not None and not terms.work.chosen else AUTO
    learning = terms.criteria.get("learning")
    learned = choose_learning(recorded, learning if isinstance(learning, Mapping) else None)
    return terms.model_copy(update={"work": choose(recorded, unit), "learning": learned})


def choose(runs: Sequence[Evidence], configured: str = AUTO) -> WorkUnit | None:
    """Return the first unit, and source of it, that all of these runs have; None if they have none in common.

    `configured` is a unit by its full name, or `auto`. One that is set and that a run lacks has no source: it
    is unknown, and no other takes its place.
    """
    found = units.pick([_counted(e) for e in runs], configured)
    if found is None:
        return WorkUnit(unit=configured, source="", chosen=False) if configured != AUTO else None
    return WorkUnit(unit=found.unit, source=found.source, chosen=configured == AUTO)


def _counted(e: Evidence) -> list[CountedRate]:
    return [CountedRate(one.unit, one.source, one.per_s) for one in e.work]


def rate(e: Evidence, unit: str, source: str) -> float | None:
    """Return what a run processed a second by this source; None if it does not say."""
    return units.rate_of(_counted(e), unit, source)


@dataclass(frozen=True, slots=True)
class WorkRates:
    """The rates of both sides in one `unit` and by one source; `why` says what is missing instead."""

    unit: str | None = None
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    source: str | None = None
    why: str | None = None


def rates(
    unit: WorkUnit,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    sides: tuple[str, str] = ("of the baseline", "of the trial"),
) -> WorkRates:
    """Both sides by the chosen source, else by another of the same unit that all runs have.

    Where a run's counter was not used because something is wrong with it, no rate that the program merely
    prints takes its place.
    """
    if not unit.source:
        return WorkRates(why=f"work: {unit.unit} is set, and not all runs count it")
    runs = (*before, *after)
    wrong = any(e.work_notes for e in runs if rate(e, unit.unit, unit.source) is None)
    others = [one.source for one in runs[0].work if one.unit == unit.unit and one.source != unit.source]
    others = [source for source in others if not (wrong and source.startswith("printed "))]
    for source in (unit.source, *others):
        found = [rate(e, unit.unit, source) for e in runs]
        known = [value for value in found if value is not None]
        if len(known) == len(runs):
            return WorkRates(unit.unit, tuple(known[: len(before)]), tuple(known[len(before) :]), source)
    return WorkRates(why=_missing(unit, zip(sides, (before, after), strict=True)))


def per_step(
    unit: WorkUnit,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    step_rate: Callable[[Evidence], float | None],
) -> float | None:
    """Return how many times as much work a step is in the trial; None if a run lacks one of its rates."""
    known = rates(unit, before, after)
    shares = []
    for runs, work in ((before, known.before), (after, known.after)):
        steps = [value for e in runs if (value := step_rate(e))]
        if not work or len(steps) < len(runs):
            return None
        shares.append(math.fsum(work) / math.fsum(steps))
    return shares[1] / shares[0] if shares[0] else None


def _missing(unit: WorkUnit, sides: Iterable[tuple[str, Sequence[Evidence]]]) -> str:
    """Return which run lacks the unit, and what is wrong there."""
    for part, runs in sides:
        for e in runs:
            if rate(e, unit.unit, unit.source) is None:
                notes = f" ({'; '.join(e.work_notes)})" if e.work_notes else ""
                return f"run {e.run} {part} does not count {unit.unit} by {unit.source}{notes}"
    return f"the runs do not count {unit.unit} in the same way"


def text(unit: WorkUnit) -> str:
    """`environment steps, from total_timesteps`."""
    if not unit.source:
        return f"{unit.unit}, which not all runs count (set)"
    return units.text(unit.unit, unit.source, unit.chosen)


CHANGE = 0.1
"""Of a reward's level: a smaller change from its start to its end is none."""


def choose_learning(
    runs: Sequence[Evidence], configured: Mapping[str, str] | None = None
) -> LearningUnit | None:
    """The series that all of these runs have, the first of the first run; None for the loss of their logs.

    `configured` is `criteria.learning`, complete: its `metric` and `direction`. A metric that is set and
    that a run lacks is a unit without a source.
    """
    found = units.pick_learning([shown(e) for e in runs], configured)
    if found is None:
        return None
    return LearningUnit(**found.figure._asdict(), direction=found.direction, chosen=found.chosen)


def shown(e: Evidence) -> LearningOfRun:
    """Return what a run shows of its learning."""
    figures = tuple(LearningFigure(one.metric, one.name, one.source) for one in e.learning)
    return LearningOfRun(units.prints_loss(e.loss.points, figures), figures)


def series_of(e: Evidence, unit: LearningUnit | LearningSeries) -> LearningSeries | None:
    """Return the series of a run by its metric, name and source; None if it has none."""
    same = (unit.metric, unit.name, unit.source)
    return next((one for one in e.learning if (one.metric, one.name, one.source) == same), None)


def trend(series: LearningSeries | None, direction: str) -> Trend:
    """CONVERGING if it gets better, DIVERGING if it gets worse, by a tenth of its level, else PLATEAU."""
    if series is None or series.points < MIN_POINTS:
        return Trend.UNKNOWN
    if not series.finite:
        return Trend.NAN
    values = [value for _, value in series.curve]
    if not values and series.first is not None and series.last is not None:
        values = [series.first, series.last]
    values = [v for v in values if isfinite(v)]
    if not values:
        return Trend.UNKNOWN
    start = _mean(values[: max(1, len(values) // 5)])
    end = _mean(values[-max(1, len(values) // 5) :])
    gain = (end - start) * (1 if direction == HIGHER else -1)
    scale = max(abs(start), abs(end), (max(values) - min(values)) / 2)
    if abs(gain) <= CHANGE * scale:
        return Trend.PLATEAU
    return Trend.CONVERGING if gain > 0 else Trend.DIVERGING


def worst(runs: Sequence[Evidence], unit: LearningUnit) -> Trend:
    """Return the worst course of the runs."""
    found = [trend(series_of(e, unit), unit.direction) for e in runs]
    order = (Trend.NAN, Trend.DIVERGING, Trend.UNKNOWN, Trend.PLATEAU)
    return next((one for one in order if one in found), Trend.CONVERGING)


def learning_text(unit: LearningUnit | None) -> str:
    """`reward ep_rew_mean, from the log, higher is better`."""
    if unit is None:
        return units.PRINTED_LOSS
    figure = LearningFigure(unit.metric, unit.name, unit.source)
    return units.PickedLearning(figure, unit.direction, unit.chosen).text


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
