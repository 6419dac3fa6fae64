"""Utilisation over time of simulated training runs, many at once.

A run is idle while it starts up, ramps up, then trains at its own level: the command's true level plus an
offset that is the run's alone. Levels are percent, times seconds; readings come twice a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.statistics.intervals import normal_quantile

Floats = NDArray[np.floating[Any]]

INTERVAL = 0.5
BASELINE = 28.0
RECORDING = Path(__file__).resolve().parents[2] / "data" / "utilisation.csv"
_LOWEST, _HIGHEST = 2.0, 97.0


@dataclass(frozen=True)
class Scenario:
    """How runs behave.

    `model` is `ar` (a first-order autoregression between 0 and 100 %), `steps` (a loop of bursts and gaps)
    or `recorded` (blocks of a recording). `run_sd` is the spread of the runs' offsets in pp, `startup` the
    median start-up, `training` the time after it: of every run, or with `fixed_steps` of a run at the
    baseline's level. `memory` is the time over which neighbouring readings are alike, None the model's own.
    `drift` is what every run has gained, in pp, when the last of a campaign's hypotheses is tested.
    `tenants` lets strangers use the device in bursts that no gate sees.
    """

    model: str
    run_sd: float
    startup: float = 12.0
    training: float = 60.0
    fixed_steps: bool = False
    memory: float | None = None
    drift: float = 0.0
    tenants: bool = False

    @property
    def name(self) -> str:
        return f"{self.model} sd {self.run_sd:g}"


@dataclass(frozen=True)
class Traces:
    """`utilisation` has shape (runs, readings), NaN after a run's end; reading k came at (k + 1) * INTERVAL.

    `busy` is what the training itself had of it. `start` and `end` of the training have shape (runs,).
    """

    utilisation: Floats
    busy: Floats
    start: Floats
    end: Floats


def simulate(scenario: Scenario, level: float, runs: int, rng: np.random.Generator) -> Traces:
    """`runs` runs of a command whose true level is `level`."""
    levels = np.clip(level + scenario.run_sd * _offsets(runs, rng), _LOWEST, _HIGHEST)
    longest = 4 * scenario.startup
    start = np.minimum(scenario.startup * np.exp(0.35 * rng.standard_normal(runs)), longest)
    trained = np.full(runs, scenario.training)
    if scenario.fixed_steps:
        trained = np.minimum(scenario.training * BASELINE / levels, 4 * scenario.training)
    tail = _TAIL if scenario.fixed_steps else 0.0
    end = start + trained + tail
    steady = _MODELS[scenario.model](levels, math.ceil(trained.max() / INTERVAL) + 1, scenario.memory, rng)
    times = INTERVAL * np.arange(1, math.floor(end.max() / INTERVAL) + 1)
    into = times[None, :] - start[:, None]
    at = np.clip(np.ceil(into / INTERVAL).astype(int) - 1, 0, steady.shape[1] - 1)
    ramp = 1 - np.exp(-np.maximum(into, 0.0) / _RAMP)
    training = (into > 0) & (into <= trained[:, None])
    busy = np.where(training, np.take_along_axis(steady, at, axis=1) * ramp, 0.0)
    seen = busy
    if scenario.tenants:
        seen, busy = _shared(busy, rng)
    seen = np.where(times[None, :] <= end[:, None] + 1e-9, np.round(seen), np.nan)
    return Traces(seen, busy, start, start + trained)


_RAMP = 4.0
_TAIL = 2.0


def _offsets(runs: int, rng: np.random.Generator) -> Floats:
    """Standard normal, one from each of `runs` equally likely spans: a pool has the spread that it is for."""
    spans = (rng.permutation(runs) + rng.uniform(size=runs)) / runs
    return np.array([normal_quantile(p) for p in np.clip(spans, 1e-9, 1 - 1e-9)])


_AR_SD = 14.0
_AR_MEMORY = 1.5


def _autoregression(levels: Floats, count: int, memory: float | None, rng: np.random.Generator) -> Floats:
    keep = math.exp(-INTERVAL / (memory or _AR_MEMORY))
    noise = rng.standard_normal((count, len(levels)))
    for k in range(1, count):
        noise[k] = keep * noise[k - 1] + math.sqrt(1 - keep * keep) * noise[k]
    means, latent = _censored(_AR_SD)
    return np.clip(np.interp(levels, means, latent) + _AR_SD * noise, 0.0, 100.0).T


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
# With a longer memory the gaps' slow part is most of the noise.
_LONG_GAP_SPREAD = 0.5
_STALL_EVERY, _STALL = 20.0, 1.5
_WINDOW = 1.0


def _step_loop(levels: Floats, count: int, memory: float | None, rng: np.random.Generator) -> Floats:
    """Busy share of the last second in a loop of a burst and a gap, with stalls now and then."""
    runs = len(levels)
    tau, swing = memory or _GAP_MEMORY, _GAP_SPREAD if memory is None else _LONG_GAP_SPREAD
    shares, gaps = _shares(swing)
    gap = np.interp(levels, shares, gaps)
    horizon = count * INTERVAL + _WINDOW
    now, slow = np.zeros(runs), rng.standard_normal(runs)
    stall = rng.exponential(_STALL_EVERY, runs)
    began, ended = [], []
    while now.min() < horizon:
        began.append(now)
        burst = _BURST * np.exp(_BURST_SPREAD * rng.standard_normal(runs))
        ended.append(now + burst)
        pause = gap * np.exp(swing * slow - swing**2 / 2) * rng.gamma(2.0, 0.5, runs)
        after = now + burst + pause
        stalled = after > stall
        after = after + np.where(stalled, rng.exponential(_STALL, runs), 0.0)
        stall = np.where(stalled, after + rng.exponential(_STALL_EVERY, runs), stall)
        keep = np.exp(-(after - now) / tau)
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
    return 100 * np.array(spans) / _WINDOW


@lru_cache
def _shares(swing: float) -> tuple[Floats, Floats]:
    """(long-run utilisation, mean gap), ascending by utilisation: renewal-reward at each slow state."""
    gaps = np.exp(np.linspace(math.log(2.0), math.log(5e-4), 200))
    states = np.array([normal_quantile((i + 0.5) / 200) for i in range(200)])
    burst = _BURST * math.exp(_BURST_SPREAD**2 / 2)
    pause = gaps[:, None] * np.exp(swing * states - swing**2 / 2)[None, :]
    running = (burst / (burst + pause)).mean(axis=1)
    # A stall begins after the step in which it falls due.
    between = _STALL_EVERY + (burst + gaps) / 2
    return 100 * running * between / (between + _STALL), gaps


_BLOCK = 20


def _recorded(levels: Floats, count: int, memory: float | None, rng: np.random.Generator) -> Floats:
    """Blocks of 10 s of a recording, moved to the level."""
    blocks = -(-count // _BLOCK)
    noise = _recording()
    first = rng.integers(0, len(noise) - _BLOCK + 1, (len(levels), blocks))
    joined = noise[first[:, :, None] + np.arange(_BLOCK)].reshape(len(levels), -1)[:, :count]
    return np.clip(levels[:, None] + joined, 0.0, 100.0)


@lru_cache
def _recording() -> Floats:
    rows = np.loadtxt(RECORDING, delimiter=",", skiprows=1)
    return np.concatenate(
        [rows[rows[:, 0] == run, 1] - rows[rows[:, 0] == run, 1].mean() for run in set(rows[:, 0])]
    )


_MODELS = {"ar": _autoregression, "steps": _step_loop, "recorded": _recorded}
_VISIT_EVERY, _VISIT = 60.0, 8.0


def _shared(busy: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(what the device reads, what the training has of it) with strangers who come and go by chance."""
    runs, count = busy.shape
    there = rng.uniform(size=runs) < _VISIT / (_VISIT + _VISIT_EVERY)
    come, go = 1 - math.exp(-INTERVAL / _VISIT_EVERY), 1 - math.exp(-INTERVAL / _VISIT)
    share = rng.uniform(0.3, 1.0, runs)
    taken = np.empty_like(busy)
    for k in range(count):
        change = rng.uniform(size=runs) < np.where(there, go, come)
        share = np.where(change & ~there, rng.uniform(0.3, 1.0, runs), share)
        there = there ^ change
        taken[:, k] = np.where(there, share, 0.0)
    return busy + (100 - busy) * taken, busy * (1 - taken / 2)
