"""What runs processed a second, in the unit of work of a campaign or a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WorkFigure:
    """`per_s` of `unit` a second, the mean of the runs; `source` is what it is read from. `per_s` is null if
    a run lacks it."""

    unit: str
    per_s: float | None
    source: str
