"""One printed series of loss values: its bounded points and its course."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, isnan

from gpudebug.core.records import Trend
from gpudebug.core.trainlog.names import NO_COURSE
from gpudebug.core.trainlog.series import Point, Thinned
from gpudebug.core.trainlog.trend import trend

BUFFERED_SHARE = 0.5
EXPLODED = 10.0
"""A number without a name that grows may be an accuracy; none is this many times its start."""


@dataclass(slots=True)
class LossSeries:
    """One named series of loss values; neighbours that are equal count as one point."""

    name: str
    phase: str
    tier: int
    order: int
    points: Thinned[Point] = field(default_factory=Thinned)
    printed: int = 0
    negative: bool = False
    finite: bool = True
    hidden_nan: bool = False
    unnamed: bool = False
    first: float | None = None
    last: float | None = None

    def add(self, value: float, step: int | None, time: float | None, gradient_lost: bool) -> None:
        """Takes a value in; `gradient_lost` says that the same line showed a gradient that is not finite."""
        self.printed += 1
        self.hidden_nan = gradient_lost and value == 0
        if self.last is not None and (value == self.last or (isnan(value) and isnan(self.last))):
            return
        if self.first is None:
            self.first = value
        self.last = value
        self.negative = self.negative or value < 0
        self.finite = self.finite and isfinite(value)
        self.points.add(Point(step, value, time))

    @property
    def of_learner(self) -> bool:
        """Whether it is a critic's or a policy's, which need not fall where the program learns."""
        return self.tier >= NO_COURSE

    @property
    def count(self) -> int:
        return self.points.count

    def trend(self) -> Trend:
        """Its course; UNKNOWN for a learner's, for validation, and if a nameless number may be no loss."""
        if not self.finite or self.hidden_nan:
            return Trend.NAN
        if self.phase == "val" or self.of_learner:
            return Trend.UNKNOWN
        values = [point.value for point in self.points.items()]
        found = trend(values if len(values) > 1 or self.printed < 2 else values * 2)
        if self.unnamed and found is Trend.DIVERGING and values[-1] < EXPLODED * abs(values[0]):
            return Trend.UNKNOWN if min(values) == values[0] else found
        return found

    def shown(self) -> tuple[Point, ...]:
        """Points, without steps where most share one: buffered lines come after the steps they tell of."""
        points = self.points.items()
        distinct = len({point.step for point in points})
        if len(points) > 2 and distinct < BUFFERED_SHARE * len(points):
            return tuple(Point(None, point.value, point.time) for point in points)
        return points
