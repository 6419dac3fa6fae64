"""The unit of work and the figure of learning that a campaign is judged by, among what its runs show.

Plain values: `status` chooses without records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def set_in(said: str) -> str:
    """Return the unit that a text of a unit of work says was set; else `auto`."""
    unit, _, rest = said.partition(", ")
    return unit if "(set)" in rest else AUTO


def rate_for(unit: str | None) -> str:
    """Return the metric that counts what gets done, of a baseline that counts `unit` as work."""
    return f"work_per_s ({unit})" if unit not in {None, WorkName.OPTIMIZER_STEPS} else "steps_per_s"


REWARD, LOSS = "reward", "loss"
HIGHER, LOWER = "higher", "lower"
BY_LOG, BY_STEPS, BY_BACKWARD = "the log", "the log's steps", "backward()"
"""Sources of a figure, and what it is over where nothing else is counted."""
MIN_POINTS = 3
"""Fewer values than this show no course."""
ENOUGH_LOSSES = 12
"""Loss parity compares the last quarter of the common steps, by at least three values a run."""


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
        what = name if name.endswith(f" {metric}") else f"{metric} {name}"
        what = metric if metric.startswith(LOG) else what
        return f"{what}, from {source}, {self.direction} is better" + ("" if self.chosen else " (set)")


def prints_loss(points: int, figures: Sequence[LearningFigure]) -> bool:
    """Tell whether a log prints enough values of its loss; where the program's own are known, few are not."""
    finer = any(one.source == BY_BACKWARD for one in figures)
    return points >= (ENOUGH_LOSSES if finer else MIN_POINTS)


PRINTED_LOSS = "the loss that the log prints"


def pick_learning(
    runs: Sequence[LearningOfRun], configured: Mapping[str, str] | None = None
) -> PickedLearning | None:
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
    found = pick_learning(runs, configured)
    if found is not None:
        return found.text
    return PRINTED_LOSS if any(run.prints_loss for run in runs) else None


JUDGED = ", judged by "
"""Between a trend and what it is of, where that is not the loss that the log prints."""


def learning_set_in(said: str) -> dict[str, str] | None:
    """Return what a text of what learning is judged by says was set, as `criteria.learning` has it; None if
    that was chosen."""
    text = said.removesuffix(" (set)")
    if text == said:
        return None
    what = text.partition(", from ")[0].partition(", which not all ")[0]
    first, last = what.partition(" ")[0], what.rpartition(" ")[2]
    metric = what if what.startswith(LOG) else first if first in (REWARD, LOSS) else last
    direction = next((one for one in (HIGHER, LOWER) if text.endswith(f", {one} is better")), None)
    return {"metric": metric, **({"direction": direction} if direction else {})}


def recorded_learning(evidence: Mapping[str, Any]) -> LearningOfRun:
    """Return the same of evidence.json as it was read; runs of gpudebug 0.1.0 have the loss alone."""
    figures = tuple(
        LearningFigure(one["metric"], one["name"], one["source"]) for one in evidence.get("learning") or ()
    )
    return LearningOfRun(prints_loss((evidence.get("loss") or {}).get("points") or 0, figures), figures)
