"""Figures of learning by their name and source: which of them a campaign is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.words import LOG

AUTO, REWARD, LOSS = "auto", "reward", "loss"
HIGHER, LOWER = "higher", "lower"
BY_LOG, BY_STEPS = "the log", "the log's steps"
"""Sources of a figure, and what it is over where nothing else is counted."""
MIN_POINTS = 3
"""Fewer values than this show no course."""


class LearningFigure(NamedTuple):
    """A reward, a loss or the user's own `log:NAME`; `source` is the log or a file that the run wrote."""

    metric: str
    name: str
    source: str


class LearningOfRun(NamedTuple):
    """What a run shows of its learning: figures, and whether its log prints enough values of a loss."""

    prints_loss: bool
    figures: tuple[LearningFigure, ...]


class PickedLearning(NamedTuple):
    """The figure that all runs have and its direction; `chosen` is False if a person has set it."""

    figure: LearningFigure
    direction: str
    chosen: bool

    @property
    def text(self) -> str:
        """`reward ep_rew_mean, from the log, higher is better`; marked if a person has set it."""
        metric, name, source = self.figure
        if not source:
            return f"{name}, which not all runs show (set)"
        what = metric if metric.startswith(LOG) else f"{metric} {name}"
        return f"{what}, from {source}, {self.direction} is better" + ("" if self.chosen else " (set)")


PRINTED_LOSS = "the loss that the log prints"


def pick(runs: Sequence[LearningOfRun], configured: Mapping[str, str] | None = None) -> PickedLearning | None:
    """Return the first figure of the first run that all runs have; None for the loss of their logs.

    `configured` is `criteria.learning`, complete: its `metric` and `direction`. By default rewards come
    before the loss, and a loss that files hold is taken where the logs print none. A metric that is set and
    that a run lacks is a figure without a source: it is unknown, and no other takes its place.
    """
    metric = (configured or {}).get("metric", AUTO)
    printed = all(run.prints_loss for run in runs)
    if not runs or (metric == LOSS and printed):
        return None
    for wanted in (REWARD, LOSS) if metric == AUTO else (metric,):
        if wanted == LOSS and printed:
            return None
        direction = (configured or {}).get("direction") or (LOWER if wanted == LOSS else HIGHER)
        for figure in _common(runs, wanted):
            return PickedLearning(figure, direction, metric == AUTO)
        if metric not in (AUTO, LOSS):
            return PickedLearning(LearningFigure(wanted, wanted, ""), direction, False)
    return None


def _common(runs: Sequence[LearningOfRun], metric: str) -> Iterator[LearningFigure]:
    for figure in runs[0].figures:
        if figure.metric == metric and all(figure in run.figures for run in runs):
            yield figure


def judged_by(runs: Sequence[LearningOfRun], configured: Mapping[str, str] | None, loss: str) -> str | None:
    """What learning is judged by, as text; None if `criteria.loss` is `any`, or if nothing can be judged."""
    if loss == "any":
        return None
    found = pick(runs, configured)
    if found is not None:
        return found.text
    return PRINTED_LOSS if any(run.prints_loss for run in runs) else None


def recorded(evidence: Mapping[str, Any]) -> LearningOfRun:
    """Return the same of evidence.json as it was read; runs of gpudebug 0.1.0 have the loss alone."""
    figures = (
        LearningFigure(one["metric"], one["name"], one["source"]) for one in evidence.get("learning") or ()
    )
    return LearningOfRun(((evidence.get("loss") or {}).get("points") or 0) >= MIN_POINTS, tuple(figures))
