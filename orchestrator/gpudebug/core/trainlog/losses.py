"""Which of the printed series is the training loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.names import TRAINING, VALIDATION, words
from gpudebug.core.trainlog.origin import NumberedLines, order_of
from gpudebug.core.trainlog.series import LossSeries
from gpudebug.core.trainlog.text import Span
from gpudebug.core.words import Trend

FEWEST = 5
"""Lines that follow one another; fewer are a listing as well as a course."""

RISING = 0.8
"""Share of the lines whose counter goes on. A listing of classes starts again with each table."""

NAME = "number without a name"
_COUNT = r"(?:(?:[Ss]tep|[Ii]ter(?:ation)?|[Ee]poch|[Bb]atch|[Uu]pdate|it)\W{0,3})?(?P<step>0+)(?: ?/ ?0+)?"
_VALUE = r"(?P<value>[+-]?0+\.0+(?:[eE][+-]?0+)?|[nN]a[nN]|[+-]?[iI]nf)"
_LINE = regex(
    rf" *\W{{0,4}}{_COUNT}\W{{0,5}}[^\w+-](?:[Tt]rain(?:ing)?\W{{0,2}}[^\w+-])?{_VALUE}[)\]}},;]?"
    rf"(?:[ ,|]+0+(?:\.0+)? ?(?:ms|s|sec|it/s|s/it|tok/s))?\s*"
)


_COLUMNS = regex(
    rf" *(?P<step>0+) *(?P<sign>[,;\t]) *{_VALUE} *(?:(?P=sign) *[+-]?0*\.?0+(?:[eE][+-]?0+)? *){{0,8}}"
)


@dataclass(frozen=True, slots=True)
class UnnamedPlace:
    """Where a line's counter and its number without a name are; `column` if it is one of a table's."""

    step: Span
    value: Span
    column: bool = False


def find_unnamed(skeleton: str) -> UnnamedPlace | None:
    """The places of `100 2.31`, `step 100: 2.31`, `100 train 2.31`, `100,2.31,0.01`; None for any line that
    says more."""
    if len(skeleton.lstrip()) > 80:
        return None
    match = _LINE.fullmatch(skeleton)
    columns = None if match else _COLUMNS.fullmatch(skeleton)
    found = match or columns
    return UnnamedPlace(found.span("step"), found.span("value"), columns is not None) if found else None


@dataclass(slots=True)
class UnnamedLoss:
    """The series of such lines."""

    series: LossSeries = field(default_factory=lambda: LossSeries(NAME, "", 4, 0, undirected=True))
    column: bool = False
    _step: int = -1
    _rising: int = 0

    def add(self, step: int, value: float, time: float | None) -> None:
        self._rising += step > self._step
        self._step = step
        self.series.add(value, step, time, False)

    @property
    def sure(self) -> bool:
        """Whether the lines are a course over steps; a table's column may be a loss only if it falls."""
        printed, first, last = self.series.printed, self.series.first, self.series.last
        falls = first is not None and last is not None and not last >= first
        return printed >= FEWEST and self._rising >= RISING * printed and (falls or not self.column)


UNDIRECTED = frozenset(("elbo", "objective", "obj"))
"""Some programs lower these, others raise them."""

AGREE = 0.1
"""By as much values of one name may differ that are printed of the same steps in two styles."""

MAX_SERIES = 96
FAIR_SHARE = 0.2
"""The loss itself is preferred over its parts unless it was printed less than this share as often."""

OFTEN = 5

LARGER = 3.0
"""Times that a loss is another in sum, so that it is the one that training lowers."""


Key = tuple[str, str, str]


class Printer(NamedTuple):
    """Who printed a line: its rank, the number ahead of it that may be one, the step or the new epoch
    that it names, if it is a bar, and of how many steps its losses are sums."""

    rank: str = ""
    numbered: int | None = None
    step: int | None = None
    bar: bool = False
    summed: float = 1.0


UNNAMED = Printer()


class Losses:
    """All candidate series, bounded in number; each rank has its own. `begun` says that one of training was
    printed."""

    def __init__(self) -> None:
        self._series: dict[tuple[Key, str], LossSeries] = {}
        self._numbered: dict[tuple[Key, str], LossSeries] = {}
        self.numbers = NumberedLines()
        self.unnamed = UnnamedLoss()
        self.begun = False
        self._printed = 0

    def add(
        self,
        key: Key,
        tier: int,
        value: float,
        step: int | None,
        time: float | None,
        gradient_lost: bool,
        printer: Printer = UNNAMED,
    ) -> None:
        """`key` is (style, phase, name): the same name printed in another style is another series."""
        self.begun = self.begun or (key[1] != "val" and tier == 0)
        homes = [(self._series, printer.rank)]
        if printer.numbered is not None:
            self.numbers.add(printer.numbered)
            homes.append((self._numbered, str(printer.numbered)))
        for home, rank in homes:
            series = home.get((key, rank))
            if series is None:
                first = rank in ("", "0")
                if sum((other in ("", "0")) == first for _, other in home) >= MAX_SERIES:
                    continue
                rises = not UNDIRECTED.isdisjoint(words(key[2]))
                series = LossSeries(key[2], key[1], tier, len(home), printer.bar, rank=rank, undirected=rises)
                series.earliest = self._printed
                home[key, rank] = series
            self._printed += 1
            series.latest = self._printed
            series.add(value, step, time, gradient_lost, printer.step, printer.summed)

    @property
    def back(self) -> bool:
        """Whether the loss is back where it began."""
        best = self.best()
        return best is not None and best.back

    def turn(self) -> None:
        """From here on the program trains something else."""
        for series in (*self._series.values(), *self._numbered.values()):
            series.turn()

    def begin_again(self) -> None:
        """The epochs began again: so do the losses that are nearer to their beginning than to what they had
        come to."""
        for series in (*self._series.values(), *self._numbered.values()):
            series.turn(if_back=True)

    def _all(self) -> list[LossSeries]:
        """Every series; where numbers ahead of lines are labels, each label's instead of all in one."""
        if not self.numbers.labels:
            return list(self._series.values())
        labelled = {key for key, _ in self._numbered}
        return [s for (key, _), s in self._series.items() if key not in labelled] + [*self._numbered.values()]

    def _judged(self) -> list[LossSeries]:
        """Return the series of the rank that speaks for all, and those without a rank.

        It is rank 0, or the lowest one that prints losses; one that prints few is no better than another.
        """
        every = self._all()
        printed: dict[str, int] = {}
        for series in every:
            if series.rank and series.phase != "val":
                printed[series.rank] = max(printed.get(series.rank, 0), series.printed)
        often = [rank for rank, count in printed.items() if count >= FAIR_SHARE * max(printed.values())]
        if not often:
            return every
        return [s for s in every if s.rank in ("", min(often, key=order_of))]

    def last(self, best: LossSeries | None) -> float | None:
        """Return the value printed last of `best`: in another style too, if that recurs and agrees. That of
        records goes before a bar's, which is rounded, and often a mean of the epoch so far."""
        if best is None or best.last is None:
            return None
        who = best.name, best.phase, best.rank
        near = AGREE * abs(best.last)
        alike = [s for s in self._all() if (s.name, s.phase, s.rank) == who and s.printed > 1]
        close = [s for s in alike if s.last is not None and abs(s.last - best.last) <= near]
        return max([best, *close], key=lambda s: (not s.of_bar, s.latest)).last

    def spoken_by(self, best: LossSeries | None) -> str | None:
        """Whose loss `best` is, if several ranks print it: `rank 0 of 4`; None for one process."""
        if best is None:
            return None
        if best.alike > 1:
            return f"{best.alike} ranks without labels: their mean is judged"
        ranks = {s.rank for s in self._all() if s.rank and (s.name, s.phase) == (best.name, best.phase)}
        if not best.rank or len(ranks) < 2:
            return None
        who = best.rank if best.rank.startswith("pid") else f"rank {best.rank}"
        return f"{who} of {len(ranks)}"

    def followed(self, best: LossSeries | None) -> bool:
        """Tell whether another loss, of values enough for a course, was printed before or behind all of
        `best`, as that of a second log in the file."""
        if best is None or best.phase == "val" or best.count < OFTEN:
            return False
        others = [s for s in self._all() if s.phase != "val" and s.tier == 0 and s.count >= OFTEN]
        return any(s.earliest >= best.latest or s.latest <= best.earliest for s in others if s is not best)

    def lost(self) -> bool:
        """Tell whether a training loss, under whatever name, was last seen as nan or inf."""
        return any(
            s.phase != "val" and s.tier == 0 and s.last is not None and not isfinite(s.last)
            for s in self._series.values()
        )

    def trend(self, best: LossSeries | None) -> Trend:
        """Return the course of `best`; NAN as well if another training loss ended as nan or inf."""
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
        judged = self._judged()
        for candidates in ([s for s in judged if s.phase != "val"], [s for s in judged if s.phase == "val"]):
            if not candidates:
                continue
            pool = _while_training(candidates)
            best = None
            for tier in sorted({s.tier for s in pool}):
                top = _top([s for s in pool if s.tier == tier])
                if best is None or best.printed < FAIR_SHARE * top.printed:
                    best = top
            if (best is not None and best.printed > 1) or not self._validated():
                break
        return best

    def _validated(self) -> bool:
        """Tell whether a loss of validation was printed often."""
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


def _rank(series: LossSeries) -> tuple[int, bool, bool, bool, int]:
    plain = series.name.split(" ")[-1] == "loss"
    return (series.count, not series.negative, plain, not series.idle, -series.order)


def _top(pool: list[LossSeries]) -> LossSeries:
    """Return the best of series alike in what they say: the first, or one that is far larger, as a column
    of a table that is 0 nearly throughout is no loss that is trained on."""
    best = max(pool, key=_rank)
    larger = [s for s in pool if _rank(s)[:3] == _rank(best)[:3] and s.size > LARGER * best.size]
    return max(larger, key=lambda s: s.size, default=best)


def shown_name(series: LossSeries) -> str:
    """Return the name of a loss, which says if it is that of validation."""
    said = series.phase != "val" or VALIDATION.intersection(words(series.name))
    return series.name if said else f"validation {series.name}"
