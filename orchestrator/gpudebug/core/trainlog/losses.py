"""Which of the printed series is the training loss, and its bounded points."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, isnan

from gpudebug.core.trainlog.names import NO_COURSE
from gpudebug.core.trainlog.series import Point, Thinned

MAX_SERIES = 96
FAIR_SHARE = 0.2
"""The loss itself is preferred over its parts unless it was printed less than this share as often."""


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


class Losses:
    """All candidate series, bounded in number. `begun` says that one of training was printed."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, str], LossSeries] = {}
        self.begun = False

    def add(
        self,
        key: tuple[str, str, str],
        tier: int,
        value: float,
        step: int | None,
        time: float | None,
        gradient_lost: bool,
    ) -> None:
        """`key` is (style, phase, name): the same name printed in another style is another series."""
        self.begun = self.begun or (key[1] != "val" and tier == 0)
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MAX_SERIES:
                return
            series = LossSeries(key[2], key[1], tier, len(self._series))
            self._series[key] = series
        series.add(value, step, time, gradient_lost)

    def lost(self) -> bool:
        """Whether a training loss, under whatever name, was last seen as nan or inf."""
        return any(
            s.phase != "val" and s.tier == 0 and s.last is not None and not isfinite(s.last)
            for s in self._series.values()
        )

    def best(self) -> LossSeries | None:
        """The training loss: not of validation, the loss itself before its parts, then the most points."""
        best: LossSeries | None = None
        for pool in (
            [s for s in self._series.values() if s.phase != "val"],
            [s for s in self._series.values() if s.phase == "val"],
        ):
            if not pool:
                continue
            best = None
            for tier in sorted({s.tier for s in pool}):
                top = max((s for s in pool if s.tier == tier), key=_rank)
                if best is None or best.printed < FAIR_SHARE * top.printed:
                    best = top
            break
        return best


def _rank(series: LossSeries) -> tuple[int, bool, bool, int]:
    return (series.count, not series.negative, series.name.split(" ")[-1] == "loss", -series.order)
