"""The picture of a verdict, as the answers that show one have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LevelPoint:
    """One run in its `place`: its `value`, and the level of the unchanged program after it with its 95 %
    band.

    `part` is baseline or trial; `failure` and `success` are where the thresholds are above this level.
    """

    run: str
    part: str
    place: int
    value: float
    level: float
    low: float
    high: float
    failure: float
    success: float


@dataclass(frozen=True, kw_only=True)
class ChangedLevel:
    """What the change does to the level: `before` is that during the trial, `after` that with the effect, and
    `low` to `high` its 95 % interval.

    `text` is the effect as its entry has it; `failure` and `success` are where the thresholds are above
    `before`.
    """

    text: str
    before: float
    after: float
    low: float
    high: float
    failure: float
    success: float


@dataclass(frozen=True, kw_only=True)
class VerdictCourse:
    """The runs of a verdict, oldest first, in the `unit` of its metric; if `lower`, less is better.

    `failure` and `success` are the criteria: percentage points, or ratios. `effect` is None if it is unknown.
    """

    metric: str
    unit: str
    lower: bool
    failure: float
    success: float
    points: Sequence[LevelPoint]
    effect: ChangedLevel | None
