"""One printed series of loss values: its bounded points and its course."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite, isnan

from gpudebug.core.records import Trend
from gpudebug.core.trainlog.names import NO_COURSE
from gpudebug.core.trainlog.series import Point, Thinned
from gpudebug.core.trainlog.trend import trend

BUFFERED_SHARE = 0.5
FEWEST_OF_ONE = 5
"""Values of an objective that show a course of their own."""

FEWEST_SHARED = 3
"""Steps that are named twice with another loss: fewer may be a step that was told of again."""

BEGIN = 30
"""The first points, kept whatever the log's length: two runs that saw the same agree on them."""

EXPLODED = 10.0
"""A number without a name that grows may be an accuracy; none is this many times its start."""


@dataclass(slots=True)
class LossSeries:
    """One named series of loss values of one rank; neighbours that are equal count as one point."""

    name: str
    phase: str
    tier: int
    order: int
    points: Thinned[Point] = field(default_factory=Thinned)
    begin: list[Point] = field(default_factory=list)
    printed: int = 0
    negative: bool = False
    finite: bool = True
    hidden_nan: bool = False
    unnamed: bool = False
    first: float | None = None
    last: float | None = None
    rank: str = ""
    since: Thinned[Point] | None = None
    before: Thinned[Point] | None = None
    _named: int = -1
    _steps: int = 0
    _again: int = 0

    def add(
        self,
        value: float,
        step: int | None,
        time: float | None,
        gradient_lost: bool,
        named: int | None = None,
    ) -> None:
        """Takes a value in; `gradient_lost` says that the same line showed a gradient that is not finite,
        `named` is the step that it names."""
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
        if len(self.begin) < BEGIN:
            self.begin.append(Point(step, value, time))
        if self.since is not None:
            self.since.add(Point(step, value, time))
        if named is not None:
            self._again += named == self._named
            self._steps += named != self._named
            self._named = named

    @property
    def alike(self) -> int:
        """How many processes print it without a label: as often each step is named with another value."""
        if self._steps < FEWEST_SHARED or self._again < BUFFERED_SHARE * self._steps:
            return 1
        return round((self._again + self._steps) / self._steps)

    def turn(self) -> None:
        """From here on the loss is another objective's."""
        if self.since is None or self.since.count >= FEWEST_OF_ONE:
            self.before = self.since if self.since is not None else copy.deepcopy(self.points)
        self.since = Thinned()

    def _of_one_objective(self) -> Thinned[Point]:
        """Return the points of the last objective, or of the one before it while they are few."""
        if self.since is not None and self.since.count >= FEWEST_OF_ONE:
            return self.since
        return self.before or self.points

    def _course(self, kept: Thinned[Point]) -> tuple[Point, ...]:
        """Return the points; the mean of each step where several processes print it."""
        points = kept.items()
        if self.alike == 1:
            return points
        steps = [list(group) for _, group in groupby(points, key=lambda point: point.step)]
        return tuple(Point(g[0].step, sum(p.value for p in g) / len(g), g[0].time) for g in steps)

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
        values = [point.value for point in self._course(self._of_one_objective())]
        found = trend(values if len(values) > 1 or self.printed < 2 else values * 2)
        if self.unnamed and found is Trend.DIVERGING and values[-1] < EXPLODED * abs(values[0]):
            return Trend.UNKNOWN if min(values) == values[0] else found
        return found

    def begun(self) -> tuple[Point, ...]:
        """Return the first points; none if a step is not known, or has several values."""
        steps = {point.step for point in self.begin}
        return tuple(self.begin) if None not in steps and len(steps) == len(self.begin) else ()

    def shown(self) -> tuple[Point, ...]:
        """Points, without steps where most share one: buffered lines come after the steps they tell of."""
        points = self._course(self.points)
        distinct = len({point.step for point in points})
        if len(points) > 2 and distinct < BUFFERED_SHARE * len(points):
            return tuple(Point(None, point.value, point.time) for point in points)
        return points
