"""Warm-up, time-weighted means, autocorrelation, and intervals from run-to-run noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gpudebug.core.statistics.assumed import assumed

if TYPE_CHECKING:
    # `status` works with this module, and answers before the records' classes would be built.
    from gpudebug.core.records import Estimate, Spread

CONFIDENCE = 0.95
SURE = 0.985
"""Two-sided confidence at each look; a trial that is looked at up to 13 times keeps about 95 %."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of the run-to-run standard deviation before a campaign has shown its own.

    It counts as `weight` runs' worth of degrees of freedom (a scaled inverse chi-squared prior, Gelman
    et al., *Bayesian Data Analysis*, section 3.3), so that two runs that agree by luck do not give an
    interval of no width, and the campaign's own runs soon outweigh it.
    """

    sd: float
    weight: float


UTILISATION_PRIOR = Prior(assumed("lone_points"), assumed("lone_runs"))
# Of the logarithm.
RATE_PRIOR = Prior(assumed("lone_rate"), assumed("lone_runs"))

# A warm-up longer than half of the series is believed only if it lowers the score this many times,
# and leaves at least this share: the last few values of any series may agree by chance.
_LATE_GAIN = 10.0
_LATE_SHARE = 0.25


def mser5(values: Sequence[float], batch: int = 5) -> int:
    """Return how many leading values are warm-up: the MSER-5 rule.

    Means of `batch` values; the truncation point minimises the squared standard error of what is left,
    searched in the first half (White 1997, *Simulation* 69; White, Cobb and Spratt 2000, WSC). Those
    authors call a minimum in the second half inconclusive; here one is taken up to the third quarter
    if it is ten times lower, as after a start-up longer than the training that it is measured with.
    Returns an index into `values`, 0 if there are fewer than four batches.
    """
    count = len(values) // batch
    if count < 4:
        return 0
    scores = _mser_scores([math.fsum(values[batch * i : batch * (i + 1)]) / batch for i in range(count)])
    half = count // 2
    best = scores.index(min(scores[: half + 1]))
    late = scores[half + 1 : min(count - 4, int(count * (1 - _LATE_SHARE))) + 1]
    if late and min(late) * _LATE_GAIN < scores[best]:
        best = half + 1 + late.index(min(late))
    return best * batch


def _mser_scores(means: Sequence[float]) -> list[float]:
    """Squared standard error of what is left from each point on."""
    # Sums around a value of the series: a constant one has no spread at all, not one of rounding errors.
    around = means[-1]
    scores = [0.0] * len(means)
    total = squares = 0.0
    for start in range(len(means) - 1, -1, -1):
        total += means[start] - around
        squares += (means[start] - around) ** 2
        left = len(means) - start
        scores[start] = max(squares - total * total / left, 0.0) / left**2
    return scores


def spread(values: Sequence[float], weights: Sequence[float]) -> Spread:
    """Time-weighted mean and 5th, 50th and 95th percentile; both sequences non-empty and equally long."""
    from gpudebug.core.records import Spread

    total = math.fsum(weights)
    mean = math.fsum(v * w for v, w in zip(values, weights, strict=True)) / total
    ordered = sorted(zip(values, weights, strict=True))
    return Spread(
        mean=mean,
        p5=_percentile(ordered, 0.05 * total),
        p50=_percentile(ordered, 0.50 * total),
        p95=_percentile(ordered, 0.95 * total),
    )


def _percentile(ordered: Sequence[tuple[float, float]], at: float) -> float:
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= at:
            return value
    return ordered[-1][0]


def effective_size(values: Sequence[float]) -> float:
    """Return how many independent values a correlated series is worth, between 1 and its length.

    n / (1 + 2 * sum of autocorrelations), summed over Geyer's initial positive sequence (Geyer 1992,
    *Statistical Science* 7, section 3.3).
    """
    n = len(values)
    if n < 4:
        return 1.0
    mean = math.fsum(values) / n
    centred = [v - mean for v in values]
    variance = math.fsum(c * c for c in centred) / n
    if variance <= 1e-12:
        return float(n)

    def correlation(lag: int) -> float:
        return math.fsum(centred[i] * centred[i + lag] for i in range(n - lag)) / (n * variance)

    time = -1.0
    for lag in range(0, min(n - 1, 1000), 2):
        pair = correlation(lag) + correlation(lag + 1)
        if pair <= 0:
            break
        time += 2 * pair
    return min(float(n), max(1.0, n / max(time, 1.0)))


# Autocorrelations cost the length times the longest lag: a night's run of readings is batched first.
_LONGEST_SERIES = 2000


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean of a correlated series; None below four values.

    Long series are taken as means of batches, which leaves the error of their mean as it is.
    """
    if len(values) > _LONGEST_SERIES:
        size = -(-len(values) // _LONGEST_SERIES)
        values = [math.fsum(values[i : i + size]) / size for i in range(0, len(values) - size + 1, size)]
    n = len(values)
    if n < 4:
        return None
    mean = math.fsum(values) / n
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    return math.sqrt(variance / effective_size(values))


def normal_probability(x: float) -> float:
    """Return the share of the standard normal distribution below `x`."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """Quantile of the standard normal distribution, by Newton's method on `math.erfc`."""
    x = 0.0
    for _ in range(60):
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        step = (normal_probability(x) - p) / density
        x -= max(-1.0, min(1.0, step))
        if abs(step) < 1e-13:
            break
    return x


@lru_cache
def t_quantile(p: float, df: float) -> float:
    """Upper quantile of Student's t for `p` in (0.5, 1) and any df >= 1 (Hill 1970, CACM algorithm 396)."""
    tail = 2 * (1 - p)
    if df <= 1:
        return 1 / math.tan(tail * math.pi / 2)
    if df == 2:
        return math.sqrt(2 / (tail * (2 - tail)) - 2)
    a = 1 / (df - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * df
    x = d * tail
    y = x ** (2 / df)
    if y > 0.05 + a:
        x = -normal_quantile(1 - tail / 2)
        y = x * x
        if df < 5:
            c += 0.3 * (df - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = a * y * y
        y = math.expm1(y) if y > 0.002 else y + 0.5 * y * y
    else:
        y = ((1 / (((df + 6) / (df * y) - 0.089 * d - 0.822) * (df + 2) * 3) + 0.5 / (df + 4)) * y - 1) * (
            df + 1
        ) / (df + 2) + 1 / y
    return math.sqrt(df * y)


def pooled(groups: Sequence[Sequence[float]], prior: Prior) -> tuple[float, float]:
    """Run-to-run sd pooled over groups of like runs, one value a run, with its degrees of freedom."""
    squares = prior.weight * prior.sd**2
    df = prior.weight
    for group in groups:
        mean = math.fsum(group) / len(group)
        squares += math.fsum((v - mean) ** 2 for v in group)
        df += len(group) - 1
    return math.sqrt(squares / df), df


def difference(old: Sequence[float], new: Sequence[float], prior: Prior) -> Estimate:
    """Return the mean of `new` less that of `old`, one value a run, by their pooled spread.

    For what no load of a machine moves, as a loss at equal steps. The interval is the 98.5 % one of every
    look at a trial (`SURE`).
    """
    from gpudebug.core.records import Estimate

    sd, df = pooled([old, new], prior)
    value = math.fsum(new) / len(new) - math.fsum(old) / len(old)
    half = t_quantile(0.5 + SURE / 2, df) * sd * math.sqrt(1 / len(old) + 1 / len(new))
    return Estimate(value=value, low=value - half, high=value + half)


def mean_interval(
    values: Sequence[float], *, within: float = 0.0, prior: Prior = UTILISATION_PRIOR
) -> Estimate:
    """Mean utilisation over runs with a 95 % interval from the spread between them, within 0 and 100 %."""
    from gpudebug.core.records import Estimate

    sd, df = pooled([values], prior)
    value = math.fsum(values) / len(values)
    half = t_quantile(0.5 + CONFIDENCE / 2, df) * max(sd, within) / math.sqrt(len(values))
    return Estimate(value=value, low=max(0.0, value - half), high=min(100.0, value + half))
