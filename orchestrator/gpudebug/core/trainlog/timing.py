"""Durations, rates and clocks that a log prints of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, sqrt
from statistics import median

from gpudebug.core.trainlog.series import Point, Thinned
from gpudebug.core.trainlog.steps import BUFFERED_TIMES, Key

BY_BAR, PRINTED = "bar", "printed"
"""Where a rate comes from: a bar's own clock, what is printed of steps."""

CUMULATIVE_GROWTH = 3.0
MIN_BAR_SECONDS = 10.0
"""A bar's clock shows whole seconds, so its turns must last for this long on average."""

STAMP_S = 1.0
"""A stamp may show whole seconds."""

MIN_PRINTED = 3
"""A single printed duration is often the first step, with all its warm-up."""


COARSE_SPAN = 10.0
"""Stamps of whole seconds measure no shorter span."""

MOST_BARS = 64

UNSURE = 0.15
"""Standard error of a median, in itself: rates that differ by more say no rate."""

OF_MEDIAN = 1.25 * 1.4826
"""Standard error of a median in median distances to it, of normal values."""

FEWEST_SHOWN = 15
"""Of fewer steps the first one's warm-up is a large part of any mean."""


@dataclass(slots=True)
class _BarClock:
    """A bar's positions over its own clock; `turns` counts how often it began."""

    n: float = 0.0
    seconds: float = 0.0
    turns: int = 0
    at: tuple[float, float] | None = None
    last: float = -1.0
    rates: Thinned[float] = field(default_factory=Thinned)

    def read(self, n: float, elapsed: float | None, rate: float | None) -> None:
        if rate and n != self.last:
            self.rates.add(rate)
        self.last = n
        if elapsed is None:
            return
        if self.at == (0, 0) and n == 1:
            self.at = (n, elapsed)  # The first step takes the warm-up too.
        elif self.at and n >= self.at[0] and elapsed >= self.at[1]:
            self.n += n - self.at[0]
            self.seconds += elapsed - self.at[1]
        else:
            self.turns += 1
        self.at = (n, elapsed)

    def per_s(self) -> float | None:
        """Its rate by its clock; None if its turns were too short for whole seconds."""
        return self.n / self.seconds if self.n and self.seconds >= MIN_BAR_SECONDS * self.turns else None

    def shown(self) -> float | None:
        """Its rate as printed; None if those of its positions differ too much."""
        rates = self.rates.items()
        if not rates:
            return None
        usual = median(rates)
        error = OF_MEDIAN * median(abs(rate - usual) for rate in rates) / sqrt(len(rates))
        return usual if error <= UNSURE * usual else None


@dataclass(slots=True)
class Stamps:
    """The time stamps of a log: the `last` one, and if they show parts of seconds."""

    last: float | None = None
    fine: bool = False
    _latest: float = -inf
    _back: int = 0

    def read(self, stamp: float | None) -> None:
        self.last = stamp
        if stamp is not None:
            self.fine = self.fine or stamp % 1 > 0
            self._back += stamp < self._latest - COARSE_SPAN
            self._latest = max(self._latest, stamp)

    @property
    def go_back(self) -> bool:
        """Whether they go back; a single one may be damage."""
        return self._back > 1


class Timing:
    """Means of the printed data, update and whole-step durations (seconds), and printed rates."""

    def __init__(self) -> None:
        self._data = self._update = self._total = 0.0
        self._n = self._n_total = 0
        self._totals: Thinned[Point] = Thinned()
        self._rates: Thinned[float] = Thinned()
        self._parts: Thinned[Point] = Thinned()
        self._waiting: float | None = None
        self._bars: dict[Key, _BarClock] = {}
        self._epochs: Thinned[Point] = Thinned()
        self._between: Thinned[float] = Thinned()
        self._ended: float | None = None
        self._known = False
        self.grain = 0.0

    def add(
        self, data: float | None, update: float | None, total: float | None, time: float | None = None
    ) -> None:
        """One line's durations in seconds; those of a block of lines are put together."""
        if total is not None:
            self._totals.add(Point(None, total, time))
        if data is None:
            data = self._waiting
        elif update is None and total is None:
            self._waiting = data
        if data is None or (update is None and total is None):
            return
        self._waiting = None
        self._data += data
        self._n += 1
        if update is not None:
            self._update += update
            self._parts.add(Point(None, data + update, time))
        else:
            self._total += total or 0.0
            self._n_total += 1

    def rate(self, value: float, named: bool = True) -> None:
        """A rate in steps per second, printed by name or by its unit alone: then one is none."""
        if value > 0:
            self._rates.add(value)
            self._known = self._known or named or self._rates.count >= MIN_PRINTED

    def bar(self, key: Key, n: float, elapsed: float | None, rate: float | None) -> None:
        """A bar's position, its clock in seconds, and the rate that it shows, in whatever it counts."""
        if key not in self._bars and len(self._bars) >= MOST_BARS:
            return
        self._bars.setdefault(key, _BarClock()).read(n, elapsed, rate)

    def epoch(self, seconds: float, time: float | None) -> None:
        """The printed duration of an epoch, as the line of its end tells it."""
        self._epochs.add(Point(None, seconds, time))
        if time is not None and self._ended is not None:
            self._between.add(time - self._ended - seconds)
        self._ended = time

    def epoch_s(self) -> float | None:
        """Return what an epoch takes as printed; None as `epochs_per_s`."""
        per_s = self.epochs_per_s()
        return 1 / per_s if per_s else None

    def between_epochs_s(self) -> float | None:
        """Return the time between the end of an epoch and the begin of the next one by the log's stamps; None
        if it is not known, or if the durations and the stamps do not fit together."""
        gaps, takes = self._between.items(), self.epoch_s()
        if takes is None or len(gaps) < MIN_PRINTED - 1:
            return None
        usual = median(gaps)
        return max(0.0, usual) if -STAMP_S <= usual <= takes else None

    def epochs_per_s(self) -> float | None:
        """Epochs per second by their printed durations; None if too few, or if they count from a start."""
        values = [point.value for point in self._epochs.items() if point.value > 0]
        return 1 / median(values) if len(values) >= MIN_PRINTED and not _cumulative(values) else None

    def data_s(self) -> float | None:
        return self._data / self._n if self._n else None

    def update_s(self) -> float | None:
        """Return the step without its wait for data."""
        if not self._n:
            return None
        if self._n_total == self._n:
            return max(0.0, (self._total - self._data) / self._n)
        return self._update / (self._n - self._n_total)

    def steps_per_s(self, bar: Key | None, steps: int | None) -> tuple[float, str] | None:
        """(rate, where it comes from): the clock of the bar, else durations whose last digit is small enough,
        else rates as printed.

        `bar` is the one that counts what the steps count; `steps` are those done, None if not known.
        """
        shown = self.shown_per_s(bar) if bar is not None else None
        if shown is not None and shown[1] == BY_BAR:
            return shown
        usual = median([point.value for point in self.durations()] or [0.0])
        if usual and self.grain <= 2 * UNSURE * usual:
            return 1 / usual, PRINTED
        if steps is not None and steps < FEWEST_SHOWN:
            return None
        rates = self._rates.items()
        return (median(rates), PRINTED) if rates and self._known else shown

    def shown_per_s(self, bar: Key) -> tuple[float, str] | None:
        """(rate, where it comes from) of a bar in what it counts: by its clock, else as printed; None if the
        printed ones differ too much."""
        clock = self._bars.get(bar)
        measured = clock.per_s() if clock else None
        if measured is not None:
            return measured, BY_BAR
        shown = clock.shown() if clock else None
        return (shown, PRINTED) if shown else None

    def durations(self) -> tuple[Point, ...]:
        """Times of whole steps as printed: by themselves, else as data and update; empty if too few."""
        totals = tuple(point for point in self._totals.items() if point.value > 0)
        if len(totals) >= MIN_PRINTED and not _cumulative([point.value for point in totals]):
            return totals
        parts = tuple(point for point in self._parts.items() if point.value > 0)
        return parts if len(parts) >= MIN_PRINTED else ()


def _cumulative(values: list[float]) -> bool:
    """Tell whether `time` counts from the start of a run or an epoch: it hardly ever falls, and grows."""
    falls = sum(1 for a, b in pairwise(values) if b < a)
    return len(values) >= 4 and falls <= 0.2 * len(values) and max(values) > CUMULATIVE_GROWTH * min(values)


def rate(points: Sequence[tuple[int, float]], least: float = 0.0) -> float | None:
    """Steps per second of the steady part from (step, time); None if the times say too little.

    Readings that arrived together count once, with the last step. The first tenth is left out as
    warm-up, and the last reading: a bar's close and a buffer's last flush come late. Fewer than three
    distinct times mean that the output was buffered. `least` is the shortest span in seconds that the
    clock can measure.
    """
    last: dict[float, int] = {}
    for step, time in points:
        last[time] = max(step, last.get(time, step))
    steady = sorted((time, step) for time, step in last.items())
    if len(steady) < BUFFERED_TIMES:
        return None
    if len(steady) > BUFFERED_TIMES:
        steady = steady[max(1, len(steady) // 10) if len(steady) > BUFFERED_TIMES + 1 else 0 : -1]
    (start, before), (end, after) = steady[0], steady[-1]
    if end <= start or end - start < least or after <= before:
        return None
    return (after - before) / (end - start)
