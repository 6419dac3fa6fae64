"""Which effects a trial can tell from noise, and how many runs an effect takes, before they are made.

How well the runs of a trial show an effect depends on their order alone, not on what they show. All figures
are on a scale on which effects add: percentage points, or logarithms for a rate.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from gpudebug.core.statistics.intervals import SURE, normal_quantile, t_quantile
from gpudebug.core.statistics.level import Effect, Noise, Seen, follow
from gpudebug.core.verdict.turns import NextRun, planned

POWER = 0.8
"""An effect counts as detected if four trials of five would tell it: the usual 80 % power."""
_REACH = normal_quantile(POWER)
MOST_TRIALS = 200
"""What takes more runs of a change than these is out of reach."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs of the trial, and of the baseline beside it."""

    trial: int
    baseline: int

    @property
    def total(self) -> int:
        return self.trial + self.baseline


@dataclass(frozen=True, slots=True)
class Ahead:
    """A trial before its first run, after the runs `before` of its baseline, oldest first.

    `sd` is the noise from run to run, `assumed` the one that the rule assumes at first; each run of the trial
    varies `variance` times as much as a long one.
    """

    before: Sequence[Seen]
    sd: float
    assumed: Noise
    variance: float = 1.0

    def detectable_effect(self, steps: Sequence[NextRun]) -> float | None:
        """Return the smallest effect whose interval excludes 0 in four trials of five; None without a run."""
        if not steps:
            return None
        error, half = self._after(steps)
        return half + _REACH * error

    def smallest_passed(self, steps: Sequence[NextRun], success: float, failure: float) -> float | None:
        """The smallest effect that passes the delta gate in four trials of five; None without a run."""
        if not steps:
            return None
        error, half = self._after(steps)
        return max(success, failure + half) + _REACH * error

    def runs_for(self, effect: float) -> RunCounts | None:
        """Return the fewest runs, the last of the baseline, after which an interval excludes what lies
        `effect` away in four trials of five; None: out of reach."""
        steps = list(planned(MOST_TRIALS))
        closed = [n + 1 for n, step in enumerate(steps) if step is NextRun.BASELINE]

        def tells(count: int) -> bool:
            error, half = self._after(steps[:count])
            return half + _REACH * error <= effect

        at = bisect_left(closed, True, key=tells)
        if at == len(closed):
            return None
        trial = steps[: closed[at]].count(NextRun.TRIAL)
        return RunCounts(trial, closed[at] - trial)

    def _after(self, steps: Sequence[NextRun]) -> tuple[float, float]:
        """Standard error of the effect and half its interval, after these runs behind the baseline's."""
        last = self.before[-1].place
        runs = [run._replace(value=0.0) for run in self.before]
        runs += [
            Seen(place, step is NextRun.TRIAL, 0.0, None, self.variance)
            for place, step in enumerate(steps, last + 1)
        ]
        found = follow(runs, self.assumed)
        error = found.spread * self.sd
        return error, t_quantile(0.5 + SURE / 2, found.freedom) * error


def own_sd(found: Effect, assumed: Noise) -> float | None:
    """Return the spread that the runs themselves show, without what is assumed; None if no run has a peer."""
    own = found.freedom - assumed.runs
    if own <= 0:
        return None
    return math.sqrt(max(found.noise**2 * found.freedom - assumed.runs * assumed.sd**2, 0.0) / own)
