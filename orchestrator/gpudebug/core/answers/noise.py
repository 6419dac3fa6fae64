"""What the run-to-run noise lets a trial detect."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GoalRuns:
    """The fewest runs that confirm an effect: of the trial, and of the baseline beside it.

    `device_time_s` is None if no run recorded its duration.
    """

    total: int
    trial: int
    baseline: int
    device_time_s: float | None


@dataclass(frozen=True, kw_only=True)
class DetectableFigure:
    """One figure of a trial: the campaign's metric, or throughput. `unit` is `pp` or `x`.

    `sd` is the spread between runs as the verdict rule takes it, `own_sd` that of the `runs` alone; of a
    ratio, of its logarithm. `told` is the smallest effect that a trial detects, `passed` the smallest that
    passes the delta gate, each in four trials of five. `goal_runs` are the runs that `goal` takes; None if no
    trial may have so many. Any other None is not known.
    """

    figure: str
    unit: str
    sd: float | None
    own_sd: float | None
    runs: int
    told: float | None
    passed: float | None
    goal: float
    goal_runs: GoalRuns | None


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Which effects a trial can detect, and the runs that an effect takes.

    `fresh_runs` are the baseline's beside trials, `left` is how many runs the device time pays for (None: not
    known), `limited` says that a trial may want more.
    """

    baseline_runs: int
    fresh_runs: int
    aa_runs: int
    max_runs: int
    left: int | None
    limited: bool
    figures: tuple[DetectableFigure, ...]
