"""Which of the printed series is the training loss."""

from __future__ import annotations

from math import isfinite

from gpudebug.core.records import Trend
from gpudebug.core.trainlog.loss_series import LossSeries
from gpudebug.core.trainlog.names import TRAINING, words
from gpudebug.core.trainlog.unnamed import UnnamedLoss

MAX_SERIES = 96
FAIR_SHARE = 0.2
"""The loss itself is preferred over its parts unless it was printed less than this share as often."""

OFTEN = 5


class Losses:
    """All candidate series, bounded in number. `begun` says that one of training was printed."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, str], LossSeries] = {}
        self.unnamed = UnnamedLoss()
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

    def trend(self, best: LossSeries | None) -> Trend:
        """The course of `best`; NAN as well if another training loss ended as nan or inf."""
        if best is None:
            return Trend.UNKNOWN
        return Trend.NAN if self.lost() else best.trend()

    def best(self) -> LossSeries | None:
        """The training loss: not of validation, the loss itself before its parts, then the most points.

        A number without a name counts if no training loss has one. What was printed once, and is no loss of
        an epoch, may be a line of source: validation that was printed often is more.
        """
        if self.unnamed.sure and not any(s.phase != "val" for s in self._series.values()):
            return self.unnamed.series
        best: LossSeries | None = None
        for candidates in (
            [s for s in self._series.values() if s.phase != "val"],
            [s for s in self._series.values() if s.phase == "val"],
        ):
            if not candidates:
                continue
            pool = _while_training(candidates)
            best = None
            for tier in sorted({s.tier for s in pool}):
                top = max((s for s in pool if s.tier == tier), key=_rank)
                if best is None or best.printed < FAIR_SHARE * top.printed:
                    best = top
            if (best is not None and best.printed > 1) or not self._validated():
                break
        return best

    def _validated(self) -> bool:
        """Whether a loss of validation was printed often."""
        return any(s.phase == "val" and s.count >= OFTEN for s in self._series.values())


def _while_training(pool: list[LossSeries]) -> list[LossSeries]:
    """Without the series that begin where a loss named as the training's had ended, as of a test after it."""
    named = [s for s in pool if s.tier == 0 and s.count >= OFTEN and TRAINING.intersection(words(s.name))]
    trained = max(named, key=_rank, default=None)
    end = trained.points.items()[-1].step if trained else None
    if end is None:
        return pool
    starts = [(s, s.points.items()[0].step) for s in pool if s.count]
    return [s for s, start in starts if s is trained or start is None or start < end]


def _rank(series: LossSeries) -> tuple[int, bool, bool, int]:
    return (series.count, not series.negative, series.name.split(" ")[-1] == "loss", -series.order)
