"""Losses that are printed without a name: one number beside a counter, and nothing else on the line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpudebug.core.trainlog.loss_series import LossSeries
from gpudebug.core.trainlog.text import Span

FEWEST = 5
"""Lines that follow one another; fewer are a listing as well as a course."""

RISING = 0.8
"""Share of the lines whose counter goes on. A listing of classes starts again with each table."""

NAME = "number without a name"
_COUNT = r"(?:(?:[Ss]tep|[Ii]ter(?:ation)?|[Ee]poch|[Bb]atch|[Uu]pdate|it)\W{0,3})?(?P<step>0+)(?: ?/ ?0+)?"
_VALUE = r"(?P<value>[+-]?0+\.0+(?:[eE][+-]?0+)?|[nN]a[nN]|[+-]?[iI]nf)"
_LINE = re.compile(
    rf" *\W{{0,4}}{_COUNT}\W{{1,6}}(?:[Tt]rain(?:ing)?\W{{1,3}})?{_VALUE}[)\]}},;]?"
    rf"(?:[ ,|]+0+(?:\.0+)? ?(?:ms|s|sec|it/s|s/it|tok/s))?\s*"
)


@dataclass(frozen=True, slots=True)
class UnnamedPlace:
    """Where a line's counter and its number without a name are."""

    step: Span
    value: Span


def find_unnamed(skeleton: str) -> UnnamedPlace | None:
    """The places of `100 2.31`, `step 100: 2.31`, `100 train 2.31`; None for any line that says more."""
    match = _LINE.fullmatch(skeleton) if len(skeleton.lstrip()) <= 80 else None
    return UnnamedPlace(match.span("step"), match.span("value")) if match else None


@dataclass(slots=True)
class UnnamedLoss:
    """The series of such lines."""

    series: LossSeries = field(default_factory=lambda: LossSeries(NAME, "", 4, 0, unnamed=True))
    _step: int = -1
    _rising: int = 0

    def add(self, step: int, value: float, time: float | None) -> None:
        self._rising += step > self._step
        self._step = step
        self.series.add(value, step, time, False)

    @property
    def sure(self) -> bool:
        """Whether the lines are a course over steps."""
        printed = self.series.printed
        return printed >= FEWEST and self._rising >= RISING * printed
