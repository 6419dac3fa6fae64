"""Rules that others decide by, on the same runs: each takes pools of baseline and trial runs to a `Cell`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.bench.verdicts.cells import HYPOTHESES, Cell
from tests.bench.verdicts.runs import Pool
from tests.bench.verdicts.traces import Floats

from gpudebug.core.statistics.intervals import normal_quantile, t_quantile

SUCCESS, FAILURE = 20.0, 10.0
Rule = Callable[[Pool, Pool, int, np.random.Generator], Cell]
Choice = NDArray[np.bool_]


def seed_rule(baseline: Pool, trial: Pool, trials: int, rng: np.random.Generator) -> Cell:
    """One run each; the means after 5 s."""
    before, after = _draw(baseline, trials, 1, rng)[:, 0], _draw(trial, trials, 1, rng)[:, 0]
    delta = trial.late[after] - baseline.late[before]
    return _cell(delta >= SUCCESS, delta < FAILURE, delta, baseline, trial, after[:, None], 1)


def mad_rule(baseline: Pool, trial: Pool, trials: int, rng: np.random.Generator) -> Cell:
    """Of a session of a baseline and eight experiments, the one with the effect: kept or not."""
    session = _sessions(baseline, trial, trials, rng)
    kept = _kept(session)[:, -1]
    delta = session[:, -1] - session[:, 0]
    chosen = _draw(trial, trials, 1, rng)
    return _cell(kept, ~kept, delta, baseline, trial, chosen, 1)


def mad_session(baseline: Pool, trial: Pool, trials: int, rng: np.random.Generator) -> float:
    """Share of sessions that keep anything."""
    return float(_kept(_sessions(baseline, trial, trials, rng)).any(axis=1).mean())


_EXPERIMENTS = 8
_KEEP = 2.0


def _sessions(baseline: Pool, trial: Pool, trials: int, rng: np.random.Generator) -> Floats:
    """Run means of shape (trials, 9): the baseline, seven changes without effect, the one with it."""
    without = baseline.mean[_draw(baseline, trials, _EXPERIMENTS, rng)]
    return np.concatenate([without, trial.mean[_draw(trial, trials, 1, rng)]], axis=1)


def _kept(session: Floats) -> Choice:
    """Experiments whose improvement is at least twice the median absolute deviation of the session."""
    deviation = np.median(np.abs(session - np.median(session, axis=1, keepdims=True)), axis=1, keepdims=True)
    return session[:, 1:] - session[:, :1] >= _KEEP * deviation


def rank_rule(baseline: Pool, trial: Pool, trials: int, rng: np.random.Generator) -> Cell:
    """Mann-Whitney's test on the readings of one run each, two-sided at 5 %, and an estimate of 20 pp."""
    before, after = _draw(baseline, trials, 1, rng)[:, 0], _draw(trial, trials, 1, rng)[:, 0]
    delta = trial.mean[after] - baseline.mean[before]
    differs = _rank_score(baseline.counts[before], trial.counts[after]) > normal_quantile(0.975)
    validated = differs & (delta >= SUCCESS)
    return _cell(validated, ~validated & (delta < FAILURE), delta, baseline, trial, after[:, None], 1)


def _rank_score(before: NDArray[np.integer[Any]], after: NDArray[np.integer[Any]]) -> Floats:
    """|z| of Mann and Whitney's U from counts by value, shape (trials, values), corrected for ties."""
    n, m = before.sum(axis=1), after.sum(axis=1)
    below = np.cumsum(before, axis=1) - before
    u = (after * (below + before / 2)).sum(axis=1)
    both = (before + after).astype(float)
    total = (n + m).astype(float)
    ties = (both**3 - both).sum(axis=1) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - ties)
    return np.abs(u - n * m / 2) / np.sqrt(np.maximum(variance, 1e-12))


_WELCH_RUNS = 3


def welch_rule(baseline: Pool, trial: Pool, trials: int, rng: np.random.Generator) -> Cell:
    """Welch's interval on the means of three runs each: lower bound above 10 pp, or upper below 20."""
    before, after = _draw(baseline, trials, _WELCH_RUNS, rng), _draw(trial, trials, _WELCH_RUNS, rng)
    x, y = baseline.mean[before], trial.mean[after]
    delta = y.mean(axis=1) - x.mean(axis=1)
    vx, vy = (v.var(axis=1, ddof=1) / _WELCH_RUNS for v in (x, y))
    df = (vx + vy) ** 2 / ((vx**2 + vy**2) / (_WELCH_RUNS - 1))
    grid, quantiles = _quantiles()
    half = np.interp(df, grid, quantiles) * np.sqrt(vx + vy)
    validated = delta - half > FAILURE
    rejected = ~validated & (delta + half < SUCCESS)
    return _cell(validated, rejected, delta, baseline, trial, after, _WELCH_RUNS)


@lru_cache
def _quantiles() -> tuple[Floats, Floats]:
    """Student's two-sided 5 % point by degrees of freedom."""
    df = np.linspace(_WELCH_RUNS - 1, 2 * (_WELCH_RUNS - 1), 201)
    return df, np.array([t_quantile(0.975, d) for d in df])


RULES: dict[str, Rule] = {
    "seed's rule": seed_rule,
    "improvement / MAD >= 2": mad_rule,
    "Mann-Whitney on samples": rank_rule,
    "Welch on run means, 3+3": welch_rule,
}


def _draw(pool: Pool, trials: int, runs: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
    return rng.integers(0, len(pool.runs), (trials, runs))


def _cell(
    validated: Choice,
    rejected: Choice,
    delta: Floats,
    baseline: Pool,
    trial: Pool,
    used: NDArray[np.integer[Any]],
    baselines: int,
) -> Cell:
    """`used` are the trial's runs, shape (trials, runs); `baselines` runs are shared by all hypotheses."""
    shared = baselines * float(baseline.seconds.mean()) / HYPOTHESES
    return Cell(
        trials=len(validated),
        validated=int(validated.sum()),
        rejected=int(rejected.sum()),
        seconds=float(trial.seconds[used].sum(axis=1).mean()) + shared,
        delta=float(np.nanmean(delta)) if not math.isnan(float(np.nanmean(delta))) else math.nan,
        runs=float(used.shape[1]),
    )
