"""What a campaign's learning is judged by: chosen once from its baseline, and its course in each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from gpudebug.core.records import Evidence, LearningSeries, LearningUnit
from gpudebug.core.statistics import learning_units
from gpudebug.core.statistics.learning_units import HIGHER, MIN_POINTS, LearningFigure, LearningOfRun
from gpudebug.core.words import Trend

CHANGE = 0.1
"""Of a reward's level: a smaller change from its start to its end is none."""


def choose(runs: Sequence[Evidence], configured: Mapping[str, str] | None = None) -> LearningUnit | None:
    """The series that all of these runs have, the first of the first run; None for the loss of their logs.

    `configured` is `criteria.learning`, complete: its `metric` and `direction`. A metric that is set and
    that a run lacks is a unit without a source.
    """
    found = learning_units.pick([shown(e) for e in runs], configured)
    if found is None:
        return None
    return LearningUnit(**found.figure._asdict(), direction=found.direction, chosen=found.chosen)


def shown(e: Evidence) -> LearningOfRun:
    """Return what a run shows of its learning."""
    figures = tuple(LearningFigure(one.metric, one.name, one.source) for one in e.learning)
    return LearningOfRun(e.loss.points >= MIN_POINTS, figures)


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


def text(unit: LearningUnit | None) -> str:
    """`reward ep_rew_mean, from the log, higher is better`."""
    if unit is None:
        return learning_units.PRINTED_LOSS
    figure = LearningFigure(unit.metric, unit.name, unit.source)
    return learning_units.PickedLearning(figure, unit.direction, unit.chosen).text


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
