"""Bounded series of printed values: of any input an even spread is kept; and the trend of a loss."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import isfinite, isnan, sqrt
from statistics import median
from typing import Generic, NamedTuple, TypeVar

from gpudebug.core.trainlog.names import NO_COURSE
from gpudebug.core.words import Trend

T = TypeVar("T")

LIMIT = 1024


class Point(NamedTuple):
    """One printed value. `step` and `time` (seconds since launch) are None if not known."""

    step: int | None
    value: float
    time: float | None


class Thinned(Generic[T]):
    """Keeps the first and the last item and every k-th between; k doubles whenever the limit is met."""

    __slots__ = ("_every", "_items", "_last", "_limit", "_next", "count")

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._items: list[T] = []
        self._every = 1
        self._last: T | None = None
        self._next = 0
        self.count = 0

    def add(self, item: T) -> None:
        self._last = item
        if self.count == self._next:
            if len(self._items) >= self._limit:
                self._items = self._items[::2]
                self._every *= 2
            if self.count % self._every == 0:
                self._items.append(item)
                self._last = None
            self._next = self.count - self.count % self._every + self._every
        self.count += 1

    def items(self) -> tuple[T, ...]:
        return tuple(self._items) if self._last is None else (*self._items, self._last)


HIGHER, LOWER = 1.25, 0.90
BLOW_UP = 2.0
FEWEST = 10
"""Fewer values show no course of their own after the fall."""

DIP, MOST_DIPS = 0.25, 3
"""A quarter of both neighbours, three times in a log, is not the loss."""

GIVEN_BACK = 0.2
"""Of what the loss had gained: a rise by more at the end is a divergence, though it ends below the start."""

BEYOND_NOISE = 4.0
"""In median distances between neighbours: the lowest of ten windows is below the level by one or two."""

BEYOND_WANDERING = 3.0
"""In the largest rise of a window over the one before it while the loss still fell."""

SURE = 3.5
"""Standard errors by which the end is above the start if a rise is no noise. `test_series.py` holds what it
brings: of flat curves with independent noise of 5 to 30 %, less than 2 % are called DIVERGING."""

MOST_UNKNOWN = 4
"""So few values show no noise: their rise is taken as it is."""

FEW = 12
"""Fewer values do not show by halves how noisy they are: their order says more."""

IN_ORDER = 2.2
"""Standard deviations of Kendall's count: about 1 in 100 orders of 5 to 11 values that say nothing."""

NOISE_OF_DISTANCE = 0.954
"""The median distance of two values with normal noise, in its standard deviations."""


def trend(values: Sequence[float]) -> Trend:
    """Return the trend of a training loss from its printed values in order.

    NAN if any value is not finite. Else the median of the last 20 % is set against the start: above
    1.25 times the start, by more than noise, is DIVERGING, below 0.90 CONVERGING, between them PLATEAU;
    fewer than two values are UNKNOWN. The thresholds are those of the recorded training logs' definition.
    The start is the median of the first 10 %; if that is more than twice the very first value, the loss blew
    up inside the first tenth, and the first value is the start. For a start at or below zero the change is
    taken relative to its magnitude, so that a more negative loss is a lower one.

    A loss that fell and then rose for good is DIVERGING too, wherever it ends: see `_rises_late`.
    """
    if not all(map(isfinite, values)):
        return Trend.NAN
    values = _without_dips(values)
    count = len(values)
    if count < 2:
        return Trend.UNKNOWN
    head = max(1, count // 10)
    start = median(values[:head])
    if 0 < BLOW_UP * values[0] < start:
        start, head = values[0], 1
    end = median(values[-max(1, count // 5) :])
    scale = abs(start) or max(map(abs, values))
    if scale == 0:
        return Trend.PLATEAU
    change = 1 + (end - start) / scale
    if change > HIGHER and count <= MOST_UNKNOWN and 2 * (end - start) < max(values) - start:
        return Trend.UNKNOWN  # Most of the rise was taken back.
    if (change > HIGHER and _is_no_noise(values, head, start, end)) or _rises_late(values, start):
        return Trend.DIVERGING
    return Trend.CONVERGING if change < LOWER else Trend.PLATEAU


def _without_dips(values: Sequence[float]) -> Sequence[float]:
    """Leave out values far below both neighbours if they recur: means over a window that has just begun."""
    padded = [values[1], *values, values[-1]] if len(values) >= FEWEST else []
    low = [0 < b < DIP * min(a, c) for a, b, c in zip(padded, padded[1:], padded[2:], strict=False)]
    return values if sum(low[1:]) < MOST_DIPS else [v for v, out in zip(values, low, strict=True) if not out]


def _is_no_noise(values: Sequence[float], head: int, start: float, end: float) -> bool:
    """Whether the end is above the start, the first `head` values, by more than noise would bring it there.

    It is if the loss jumped for good, if few values climb in order, or if the end is many standard errors
    above the start, and either twice as high or above any level before. Noise whose neighbours are alike is
    no noise in few values.
    """
    count, tail = len(values), max(1, len(values) // 5)
    if count <= MOST_UNKNOWN or _jumps(values) or (count < FEW and _climbs(values)):
        return True
    error = 1.25 * _noise(values) * sqrt(1 / head + 1 / tail)  # Of medians, 1.25 times that of means.
    if end - start <= SURE * error:
        return False
    size = max(2, tail)
    doubled = 0 < BLOW_UP * start < end
    return doubled or count < FEWEST or end > max(map(median, _windows(values[:-size], size)))


def _jumps(values: Sequence[float]) -> bool:
    """Whether at some place all that follows, three values at least, is above twice all that went before."""
    lowest = list(accumulate(reversed(values), min))[::-1]
    highest = accumulate(values, max)
    return any(0 < BLOW_UP * high < low for high, low in zip(highest, lowest[1:-2], strict=False))


def _climbs(values: Sequence[float]) -> bool:
    """Whether the values rise in order but for few pairs: Kendall's test, which needs no measure of noise."""
    count = len(values)
    rising = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    return rising - 1 > IN_ORDER * sqrt(count * (count - 1) * (2 * count + 5) / 18)


def _noise(values: Sequence[float]) -> float:
    """The standard deviation of the values about their course: of the calmer half, where halves show it."""
    found = []
    for apart in (1, 2):
        gaps = [abs(b - a) for a, b in zip(values, values[apart:], strict=False)]
        half = len(gaps) // 2
        few = len(values) < FEW
        found.append(median(gaps) if few else min(median(gaps[:half]), median(gaps[half:])))
    # Where neighbours are alike, those two apart differ more; of a steady rise they differ twice as much.
    return max(found[0], min(found[1], 1.3 * found[0])) / NOISE_OF_DISTANCE


def _windows(values: Sequence[float], size: int) -> list[Sequence[float]]:
    return [values[at : at + size] for at in range(0, len(values) - size + 1, size)]


def _rises_late(values: Sequence[float], start: float) -> bool:
    """Whether the loss had fallen, and its last tenth is all above its lowest window, by more than noise.

    Windows are a tenth of the values, at least three. The rise must be a quarter of the lowest level, a
    fifth of what the loss had gained until then, four times the usual distance of two neighbours, and three
    times the largest rise of one window over the one before it while the loss still fell.
    """
    if len(values) < FEWEST:
        return False
    size = max(3, len(values) // 10)
    tail = values[-size:]
    windows = _windows(values[:-size], size)
    levels = [median(window) for window in windows]
    at = min(range(len(levels)), key=levels.__getitem__)
    low = levels[at]
    rise = median(tail) - low
    noise = median(abs(b - a) for a, b in pairwise(values))
    wandering = max((b - a for a, b in pairwise(levels[: at + 1])), default=0.0)
    return (
        at > 0
        and (start <= 0 or low < LOWER * start)
        and min(tail) > max(windows[at])
        and rise > (HIGHER - 1) * abs(low)
        and rise > GIVEN_BACK * (start - low)
        and rise > BEYOND_NOISE * noise
        and rise > BEYOND_WANDERING * wandering
    )


BUFFERED_SHARE = 0.5
FEWEST_OF_ONE = 5
"""Values of an objective that show a course of their own."""

FEWEST_SHARED = 3
"""Steps that are named twice with another loss: fewer may be a step that was told of again."""

MOST_LOOKED_AT = 64
OUT_OF_ORDER = 0.2
"""Of the first lines of a log this share names a step before that of the line above it."""

BEGIN = 30
"""The first points, kept whatever the log's length: two runs that saw the same agree on them."""

EXPLODED = 10.0
"""A number without a name that grows may be an accuracy; none is this many times its start."""


@dataclass(slots=True)
class LossSeries:
    """One named series of loss values of one rank; neighbours that are equal count as one point.

    `of_bar`: a progress bar shows it; `zeros` counts its zeros, `size` is the sum of its magnitudes;
    `undirected`: it may be one that rises where the program learns; `summed`: values are sums over several
    steps, and its points are those of one; `earliest` and `latest` are the places of
    its ends among all that was printed.
    """

    name: str
    phase: str
    tier: int
    order: int
    of_bar: bool = False
    points: Thinned[Point] = field(default_factory=Thinned)
    begin: list[Point] = field(default_factory=list)
    printed: int = 0
    zeros: int = 0
    size: float = 0.0
    negative: bool = False
    finite: bool = True
    hidden_nan: bool = False
    undirected: bool = False
    earliest: int = 0
    latest: int = 0
    first: float | None = None
    last: float | None = None
    rank: str = ""
    summed: bool = False
    since: Thinned[Point] | None = None
    before: Thinned[Point] | None = None
    _named: int = -1
    _steps: int = 0
    _again: int = 0
    _falls: int = 0
    _distinct: set[int] = field(default_factory=set)

    def add(
        self,
        value: float,
        step: int | None,
        time: float | None,
        gradient_lost: bool,
        named: int | None = None,
        summed: float = 1.0,
    ) -> None:
        """Takes a value in; `gradient_lost` says that the same line showed a gradient that is not finite,
        `named` is the step, or the new epoch, that it names, `summed` of how many steps it is the sum."""
        self.printed += 1
        finite = isfinite(value)
        if value == 0:
            self.zeros += 1
        elif finite:
            self.size += abs(value)
        self.hidden_nan = gradient_lost and value == 0
        if self.last is not None and (value == self.last or (isnan(value) and isnan(self.last))):
            return
        if self.first is None:
            self.first = value
        self.last = value
        self.negative = self.negative or value < 0
        self.finite = self.finite and finite
        self.summed = self.summed or summed != 1
        point = Point(step, value / summed, time)
        self.points.add(point)
        if len(self.begin) < BEGIN:
            self.begin.append(point)
        if self.since is not None:
            self.since.add(point)
        if named is not None:
            self._again += named == self._named
            self._steps += named != self._named
            if self._steps <= MOST_LOOKED_AT and named != self._named:
                self._falls += named < self._named
                self._distinct.add(named)
            self._named = named

    @property
    def disordered(self) -> bool:
        """Whether its lines are out of order: the steps that they name fall often, and none comes again."""
        looked_at = min(self._steps, MOST_LOOKED_AT)
        often = self._falls > OUT_OF_ORDER * looked_at
        return often and looked_at >= FEWEST and len(self._distinct) == looked_at

    @property
    def idle(self) -> bool:
        """Whether it is 0 nearly throughout, as that of a part that is not trained."""
        return 2 * self.zeros > self.printed

    @property
    def alike(self) -> int:
        """How many processes print it without a label: as often each step is named with another value."""
        if self._steps < FEWEST_SHARED or self._again < BUFFERED_SHARE * self._steps:
            return 1
        return round((self._again + self._steps) / self._steps)

    @property
    def back(self) -> bool:
        """Whether it is nearer to where it began than to what it had come to, two values ago."""
        kept = [p.value for p in self.points.items() if isfinite(p.value)]
        return len(kept) >= FEWEST_OF_ONE and abs(kept[-1] - kept[0]) <= abs(kept[-1] - median(kept[-4:-2]))

    def turn(self, *, if_back: bool = False) -> None:
        """From here on the loss is another objective's; `if_back`: if it went back to where it began."""
        if if_back and not self.back:
            return
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
        """Its course; UNKNOWN for a learner's, for validation, if its lines are out of order, and if what
        rises may be no loss."""
        if not self.finite or self.hidden_nan:
            return Trend.NAN
        if self.phase == "val" or self.of_learner or self.disordered:
            return Trend.UNKNOWN
        values = [point.value for point in self._course(self._of_one_objective())]
        found = trend(values if len(values) > 1 or self.printed < 2 else values * 2)
        if self.undirected and found is Trend.DIVERGING and values[-1] < EXPLODED * abs(values[0]):
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
