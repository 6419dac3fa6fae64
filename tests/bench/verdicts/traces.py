"""Utilisation over time of simulated training runs, many at once.

A run is idle while it starts up, ramps up, then trains at its own level. Levels are percent, times seconds;
readings come twice a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.intervals import normal_quantile

Floats = NDArray[np.floating[Any]]

INTERVAL = 0.5
BASELINE = 28.0
LOWEST, HIGHEST = 5.0, 97.0


@dataclass(frozen=True)
class Program:
    """What trains. `model` is `ar` (a first-order autoregression between 0 and 100 %) or `steps` (a loop of
    bursts and gaps); `startup` the median start-up, `training` the time after it: of every run, or with
    `fixed_steps` of a run at the baseline's level."""

    model: str = "steps"
    startup: float = 12.0
    training: float = 60.0
    fixed_steps: bool = False


@dataclass(frozen=True)
class Traces:
    """`utilisation` has shape (runs, readings), NaN after a run's end; reading k came at (k + 1) * INTERVAL.

    `busy` is what the training had of it. `start` and `end` of the training have shape (runs,).
    """

    utilisation: Floats
    busy: Floats
    start: Floats
    end: Floats


def simulate(program: Program, levels: Floats, rng: np.random.Generator) -> Traces:
    """A run at each of these levels."""
    runs = len(levels)
    start = np.minimum(program.startup * np.exp(0.35 * rng.standard_normal(runs)), 4 * program.startup)
    trained = np.full(runs, program.training)
    if program.fixed_steps:
        trained = np.minimum(program.training * BASELINE / levels, 4 * program.training)
    tail = _TAIL if program.fixed_steps else 0.0
    end = start + trained + tail
    steady = _MODELS[program.model](levels, math.ceil(trained.max() / INTERVAL) + 1, rng)
    times = INTERVAL * np.arange(1, math.floor(end.max() / INTERVAL) + 1)
    into = times[None, :] - start[:, None]
    at = np.clip(np.ceil(into / INTERVAL).astype(int) - 1, 0, steady.shape[1] - 1)
    ramp = 1 - np.exp(-np.maximum(into, 0.0) / _RAMP)
    training = (into > 0) & (into <= trained[:, None])
    busy = np.where(training, np.take_along_axis(steady, at, axis=1) * ramp, 0.0)
    seen = np.where(times[None, :] <= end[:, None] + 1e-9, np.round(busy), np.nan)
    return Traces(seen, busy, start, start + trained)


_RAMP = assumed("ramp_s")
_TAIL = 2.0


_AR_SD, _AR_MEMORY = assumed("flutter_points"), assumed("flutter_s")


def _autoregression(levels: Floats, count: int, rng: np.random.Generator) -> Floats:
    keep = math.exp(-INTERVAL / _AR_MEMORY)
    noise = rng.standard_normal((count, len(levels)))
    for k in range(1, count):
        noise[k] = keep * noise[k - 1] + math.sqrt(1 - keep * keep) * noise[k]
    means, latent = _censored(_AR_SD)
    return np.clip(np.interp(levels, means, latent)[:, None] + _AR_SD * noise.T, 0.0, 100.0)


@lru_cache
def _censored(sd: float) -> tuple[Floats, Floats]:
    """(means after values below 0 and above 100 are moved there, the normal distribution's own means)."""
    latent = np.arange(-60.0, 160.5, 0.5)

    def mean(m: float) -> float:
        low, high = -m / sd, (100 - m) / sd
        below, above = (0.5 * (1 + math.erf(z / math.sqrt(2))) for z in (low, high))
        density = (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) for z in (low, high))
        return m * (above - below) + sd * (next(density) - next(density)) + 100 * (1 - above)

    return np.array([mean(m) for m in latent]), latent


_BURST, _BURST_SPREAD = 0.07, 0.15
_GAP_SPREAD, _GAP_MEMORY = 0.25, 8.0
_STALL_EVERY, _STALL = 20.0, 1.5
_WINDOW = 1.0


def _step_loop(levels: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Busy share of the last second in a loop of a burst and a gap, with stalls now and then."""
    runs = len(levels)
    shares, gaps = _shares()
    gap = np.interp(levels, shares, gaps)
    horizon = count * INTERVAL + _WINDOW
    now, slow = np.zeros(runs), rng.standard_normal(runs)
    stall = rng.exponential(_STALL_EVERY, runs)
    began, ended = [], []
    while now.min() < horizon:
        began.append(now)
        burst = _BURST * np.exp(_BURST_SPREAD * rng.standard_normal(runs))
        ended.append(now + burst)
        pause = gap * np.exp(_GAP_SPREAD * slow - _GAP_SPREAD**2 / 2) * rng.gamma(2.0, 0.5, runs)
        after = now + burst + pause
        stalled = after > stall
        after = after + np.where(stalled, rng.exponential(_STALL, runs), 0.0)
        stall = np.where(stalled, after + rng.exponential(_STALL_EVERY, runs), stall)
        keep = np.exp(-(after - now) / _GAP_MEMORY)
        slow = keep * slow + np.sqrt(1 - keep**2) * rng.standard_normal(runs)
        now = after
    edges = np.stack([np.array(began), np.array(ended)], axis=1).reshape(-1, runs)
    bursts = np.array(ended) - np.array(began)
    done = np.cumsum(bursts, axis=0)
    busy = np.stack([done - bursts, done], axis=1).reshape(-1, runs)
    ticks = _WINDOW + INTERVAL * np.arange(count)
    spans = [
        np.interp(ticks, edges[:, i], busy[:, i]) - np.interp(ticks - _WINDOW, edges[:, i], busy[:, i])
        for i in range(runs)
    ]
    return np.array(spans) * (100 / _WINDOW)


@lru_cache
def _shares() -> tuple[Floats, Floats]:
    """(long-run utilisation, mean gap), ascending by utilisation: renewal-reward at each slow state."""
    gaps = np.exp(np.linspace(math.log(2.0), math.log(5e-4), 200))
    states = np.array([normal_quantile((i + 0.5) / 200) for i in range(200)])
    burst = _BURST * math.exp(_BURST_SPREAD**2 / 2)
    pause = gaps[:, None] * np.exp(_GAP_SPREAD * states - _GAP_SPREAD**2 / 2)[None, :]
    running = (burst / (burst + pause)).mean(axis=1)
    # A stall begins after the step in which it falls due.
    between = _STALL_EVERY + (burst + gaps) / 2
    return 100 * running * between / (between + _STALL), gaps


_MODELS = {"ar": _autoregression, "steps": _step_loop}
