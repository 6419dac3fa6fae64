"""A trial against its baseline: its estimate, an interval that holds at every look, what more runs could do.

A trial is looked at after every run and ends as soon as its answer is certain. An interval that covers the
truth 95 times in 100 at one look covers it less often when it may be looked at six times; these are
widened so that they hold at all looks together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpudebug.core.statistics.intervals import (
    CONFIDENCE,
    RATE_PRIOR,
    UTILISATION_PRIOR,
    Prior,
    normal_probability,
    pooled,
    t_quantile,
)

if TYPE_CHECKING:
    from gpudebug.core.records import Estimate


DRIFTED = 2.0
"""Means of one command that lie this many standard errors apart are not of one level: 5 % do by chance."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Mean of the trial's runs minus the baseline's level, with what its error is made of.

    `sd` is the pooled run-to-run standard deviation with `df` degrees of freedom. `recorded`, `fresh` and
    `after` count runs: of the baseline as it was recorded, of the baseline beside the trial, of the trial.
    `drift` is the variance by which the recorded baseline's level may differ from today's, `between` that by
    which any run made today may, as its moment is not the next one's; `extra` what the
    mean of the trial's runs varies more than whole runs do, `within` the least possible standard error.
    `looks` is how often the interval may be looked at.
    """

    value: float
    sd: float
    df: float
    recorded: int
    fresh: int
    after: int
    drift: float = 0.0
    between: float = 0.0
    extra: float = 0.0
    within: float = 0.0
    looks: int = 1

    @property
    def baseline_variance(self) -> float:
        """Of the baseline's level: recorded and fresh runs weighted by how much each shows of it."""
        return self._baseline_variance(self.fresh)

    def _baseline_variance(self, fresh: int) -> float:
        return self.unit / (self.worth + fresh)

    @property
    def unit(self) -> float:
        """The variance of one run."""
        return self.sd**2 + self.between

    @property
    def worth(self) -> float:
        """How many fresh runs the recorded ones are worth: as many as they are, without drift."""
        return self.unit / (self.sd**2 / self.recorded + self.drift)

    @property
    def trial_variance(self) -> float:
        return self.unit / self.after + self.extra

    @property
    def error(self) -> float:
        """Standard error of `value`."""
        return max(math.sqrt(self.baseline_variance + self.trial_variance), self.within)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval that holds at each of the looks; they share the 5 % equally (Bonferroni).

        Repeated confidence intervals: Jennison and Turnbull, *Group Sequential Methods*, chapter 9.
        """
        return self._quantile(self.df) * self.error

    @property
    def interval(self) -> Estimate:
        """The value with the 95 % interval that holds at each of the looks."""
        from gpudebug.core.records import Estimate

        half = self.half_width
        return Estimate(value=self.value, low=self.value - half, high=self.value + half)

    def _quantile(self, df: float) -> float:
        return t_quantile(1 - (1 - CONFIDENCE) / 2 / self.looks, df)

    def chances(self, success: float, failure: float, *, fresh: int, after: int) -> tuple[float, float]:
        """The probabilities, as things stand, that `fresh` and `after` runs in all end in a pass, in a fail.

        A pass is an estimate of at least `success` with its lower bound above `failure`, a fail an estimate
        below `failure` with its upper bound below `success`. Predictive probability from the runs so far
        (Jennison and Turnbull, chapter 10): the estimate then lies around today's, as far as the error that
        is still to be averaged out lets it.
        """
        final = math.sqrt(self._baseline_variance(fresh) + self.unit / after)
        final = max(final, self.within * math.sqrt(self.after / after))
        half = self._quantile(self.df + fresh - self.fresh + after - self.after) * final
        moves = math.sqrt(max(self.error**2 - final**2, 1e-12))
        return (
            1 - normal_probability((max(success, failure + half) - self.value) / moves),
            normal_probability((min(failure, success - half) - self.value) / moves),
        )


def most_fresh(max_runs: int, worth: float) -> int:
    """How many fresh runs of the baseline a trial of up to `max_runs` may ask for beside those recorded.

    `worth` counts these (`Contrast.worth`). In all the baseline has at most four times as many runs as the
    trial: then it adds an eighth to the interval's width, and more runs of it cannot take that away.
    """
    return max(1, math.floor(4 * max_runs - worth + 1e-9)) if max_runs > 1 else 0


def contrast(
    recorded: Sequence[float],
    after: Sequence[float],
    *,
    fresh: Sequence[float] = (),
    looks: int = 1,
    within: tuple[float, float] = (0.0, 0.0),
    extra: float = 0.0,
    prior: Prior = UTILISATION_PRIOR,
    moments: bool = False,
    uneven: bool = False,
) -> Contrast:
    """One value a run: `recorded` and `fresh` of the baseline, `after` of the trial; one of the baseline may
    be empty.

    Where the fresh runs of the baseline differ from the recorded ones by more than twice what the spread
    explains, the machine has drifted: the recorded ones then count for less (the between-group variance of
    DerSimonian and Laird 1986, *Controlled Clinical Trials* 7). With `moments` the runs of the trial and the
    fresh ones were made at one moment each as well, and vary between moments by as much; what they vary
    among themselves is in the spread already, so that each further one takes its share of the drift away.
    `within` are the typical standard errors of one baseline run and of one trial run: no interval is narrower
    than they allow. With `uneven` the trial's runs are shorter than the baseline's: where they spread more
    than all runs together, their mean varies by their own spread.
    """
    if not recorded:
        # Those that were recorded are left out: the baseline is what was measured beside the trial.
        recorded, fresh = fresh, ()
    groups = [recorded, after, *([fresh] if fresh else [])]
    sd, df = pooled(groups, prior)
    level = math.fsum(recorded) / len(recorded)
    drift = between = 0.0
    if fresh:
        now = math.fsum(fresh) / len(fresh)
        drift = _drift(now - level, sd**2 * (1 / len(recorded) + 1 / len(fresh)))
        between = drift / (len(fresh) + len(after) - 1) if moments else 0.0
        old, new = 1 / (sd**2 / len(recorded) + drift), len(fresh) / (sd**2 + between)
        level = (old * level + new * now) / (old + new)
    if uneven:
        extra += max(0.0, _variance(after) - sd**2) / len(after)
    count = len(recorded) + len(fresh)
    return Contrast(
        value=math.fsum(after) / len(after) - level,
        sd=sd,
        df=df,
        recorded=len(recorded),
        fresh=len(fresh),
        after=len(after),
        drift=drift,
        between=between,
        extra=extra,
        within=math.sqrt(within[0] ** 2 / count + within[1] ** 2 / len(after)),
        looks=looks,
    )


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)


def _drift(apart: float, variance: float) -> float:
    """Between-group variance of two means that are `apart`; `variance` is expected of their difference."""
    return apart**2 - variance if apart**2 > DRIFTED**2 * variance else 0.0


_LARGEST_LOG = 700.0
"""Beyond this `math.exp` overflows."""


def ratio(
    recorded: Sequence[float],
    after: Sequence[float],
    *,
    fresh: Sequence[float] = (),
    looks: int = 1,
    prior: Prior = RATE_PRIOR,
    moments: bool = False,
    uneven: bool = False,
) -> Estimate:
    """Ratio of geometric means, trial over baseline (positive, one value a run), with its interval."""
    from gpudebug.core.records import Estimate

    logs = ([math.log(v) for v in values] for values in (recorded, after, fresh))
    old, new, now = logs
    found = contrast(old, new, fresh=now, looks=looks, prior=prior, moments=moments, uneven=uneven).interval
    assert found.low is not None and found.high is not None
    value, low, high = (math.exp(min(x, _LARGEST_LOG)) for x in (found.value, found.low, found.high))
    return Estimate(value=value, low=low, high=high)
