"""Printed durations and rates of a step: what a program says about its own speed."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median

from gpudebug.core.trainlog.series import Point, Thinned

Line = tuple[str, float | None]
"""A line's text and when it was there, in seconds since launch; None without times."""

LONGEST_LINE = 512
_TOPICS = {
    "samples": re.compile(rb"(?:sample|image|img|example|sequence|seq)s?[ _]?(?:/|per)[ _]?s", re.I),
    "batch": re.compile(rb"batch[ _-]?size", re.I),
    "environments": re.compile(rb"number of environments", re.I),
    "tokens": re.compile(rb"tokens (?:per|/) ?(?:iter|step|update|global)", re.I),
    "latency": re.compile(
        rb"latenc|infer|forward|respon|predict|(?:time|duration)[ _-]+per[ _-]"
        rb"|^\W*(?:loop|request|frame|image|video) ?#?0",
        re.I,
    ),
}


def topics(skeleton: bytes) -> tuple[str, ...]:
    """Return what lines of this skeleton speak of: samples, batch, environments, tokens, latency."""
    return tuple(name for name, pattern in _TOPICS.items() if pattern.search(skeleton))


CUMULATIVE_GROWTH = 3.0
MIN_BAR_SECONDS = 10.0
"""A bar's clock shows whole seconds, so its turns must last for this long on average."""

MIN_PRINTED = 3
"""A single printed duration is often the first step, with all its warm-up."""


class Timing:
    """Means of the printed data, update and whole-step durations (seconds), and printed rates."""

    def __init__(self) -> None:
        self._data = self._update = self._total = 0.0
        self._n = self._n_total = 0
        self._totals: Thinned[Point] = Thinned()
        self._rates: Thinned[float] = Thinned()
        self._bar_rates: Thinned[float] = Thinned()
        self._parts: Thinned[Point] = Thinned()
        self._bar_n = self._bar_s = 0.0
        self._turns = 0
        self._waiting: float | None = None
        self._bar: tuple[str, float, float] | None = None

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

    def rate(self, value: float) -> None:
        """A rate in steps per second printed by name."""
        if value > 0:
            self._rates.add(value)

    def bar_rate(self, value: float) -> None:
        """A rate that a bar shows, in whatever the bar counts."""
        if value > 0:
            self._bar_rates.add(value)

    def bar(self, label: str, n: float, elapsed: float) -> None:
        """A bar's position and clock; bars that start again are added up."""
        held = self._bar
        if held and held[0] == label and n >= held[1] and elapsed >= held[2]:
            self._bar_n += n - held[1]
            self._bar_s += elapsed - held[2]
        else:
            self._turns += 1
        self._bar = (label, n, elapsed)

    def data_s(self) -> float | None:
        return self._data / self._n if self._n else None

    def update_s(self) -> float | None:
        """Return the step without its wait for data."""
        if not self._n:
            return None
        if self._n_total == self._n:
            return max(0.0, (self._total - self._data) / self._n)
        return self._update / (self._n - self._n_total)

    def steps_per_s(self, by_bar: bool) -> tuple[float, str] | None:
        """(rate, where it comes from): the bar's own clock, else durations, else rates as printed.

        `by_bar` says whether bars count what the steps count.
        """
        if by_bar and self._bar_n > 0 and self._bar_s >= MIN_BAR_SECONDS * self._turns:
            return self._bar_n / self._bar_s, "bar"
        durations = self.durations()
        if durations:
            return 1 / median(point.value for point in durations), "printed"
        rates = self._rates.items() or (self._bar_rates.items() if by_bar else ())
        return (median(rates), "printed") if rates else None

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
