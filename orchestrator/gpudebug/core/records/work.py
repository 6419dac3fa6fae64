"""What a training processed, and how it learned."""

from __future__ import annotations

from gpudebug.core.records.base import Record
from gpudebug.core.words import Trend


class LossEvidence(Record):
    """The training loss. `points` counts the printed values, redraws of one value once.

    `curve` is at most 40 (step, mean loss), over equal spans of steps; 160 of a run that gpudebug ended.
    `begin` is the first 30 (step, loss) as printed; empty if steps are not known or are of several ranks.
    `of` says whose loss it is where several ranks print one, and since when it is judged.
    """

    name: str | None = None
    trend: Trend = Trend.UNKNOWN
    points: int = 0
    first: float | None = None
    last: float | None = None
    advice: str | None = None
    curve: tuple[tuple[float, float], ...] = ()
    begin: tuple[tuple[int, float], ...] = ()
    of: str | None = None


class WorkRate(Record):
    """What a run processed a second, in `unit`: environment steps, tokens, samples, optimizer steps, epochs
    or the user's own `log:NAME`; `source` names the counter or the figure that says so."""

    unit: str
    per_s: float
    source: str


class WorkUnit(Record):
    """The unit of work of a campaign and what it is read from; `chosen` is False if a person has set it."""

    unit: str
    source: str
    chosen: bool = True


class LearningSeries(Record):
    """One figure of learning that a run showed: `metric` is reward, loss or the user's own `log:NAME`.

    `source` is the log, or the file that the run wrote; `curve` is at most 40 (work done, mean value), the
    work of the counter or the unit `over`. `finite` is False if a value was NaN or infinite.
    """

    metric: str
    name: str
    source: str
    points: int
    first: float | None = None
    last: float | None = None
    finite: bool = True
    over: str | None = None
    curve: tuple[tuple[float, float], ...] = ()


class LearningUnit(Record):
    """What learning is judged by: one series of the baseline, and whether `higher` is better.

    `chosen` is False if a person has set it.
    """

    metric: str
    name: str
    source: str
    direction: str = "higher"
    chosen: bool = True
