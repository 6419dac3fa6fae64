"""Simulated runs as the product sees them: every trace becomes an `Evidence` by `core.evidence.build`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from tests.bench.verdicts.traces import (
    BASELINE,
    HIGHEST,
    INTERVAL,
    LOWEST,
    Floats,
    Program,
    Traces,
    simulate,
)

from gpudebug.core.evidence import build as evidence
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.records import Evidence
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.words import Outcome, Trend

# Steps per busy second, for 4 steps a second at the baseline's level: work is conserved.
STEPS_PER_BUSY_S = 4 / (BASELINE / 100)
_DEVICE = "GPU-00000000-0000-0000-0000-000000000000"
_AT_ONCE = 100
_NEAR = 1.2
"""How far from the wanted level, in pp, a run is drawn; what it shows is moved by as much."""


@dataclass(frozen=True, slots=True)
class Run:
    """A completed run of `seconds` on the device at this true level, which shows `above` more."""

    level: float
    seconds: float
    evidence: Evidence
    above: float


@dataclass(frozen=True)
class Library:
    """Runs of one program at every level, ascending; a campaign's runs are drawn from those near theirs."""

    levels: Floats
    runs: tuple[Run, ...]

    def draw(self, level: float, rng: np.random.Generator) -> Run:
        """A run near this level, between LOWEST and HIGHEST."""
        low, high = np.searchsorted(self.levels, (level - _NEAR, level + _NEAR))
        return self.runs[rng.integers(low, high)]


@lru_cache
def library(program: Program, size: int, seed: int) -> Library:
    """`size` runs over all levels, without the few of low levels whose window is too short.

    Most are where most are drawn: what those near a level show on average should be that level.
    """
    rng = np.random.default_rng([seed, size])
    evenly = (np.arange(size) + rng.uniform(size=size)) / size
    levels = np.interp(evenly, (0.0, 0.05, 0.9, 1.0), (LOWEST, 15.0, 65.0, HIGHEST))
    runs: list[Run] = []
    for first in range(0, size, _AT_ONCE):
        part = levels[first : first + _AT_ONCE]
        traces = simulate(program, part, rng)
        runs += [_run(traces, i, level) for i, level in enumerate(part.tolist())]
    runs = [run for run in runs if run.evidence.utilisation is not None]
    return Library(np.array([run.level for run in runs]), tuple(runs))


def _run(traces: Traces, i: int, level: float) -> Run:
    readings = traces.utilisation[i][~np.isnan(traces.utilisation[i])]
    rows = [
        Sample(INTERVAL * (k + 1), value, None, 0, _DEVICE, 1, None, None)
        for k, value in enumerate(readings.tolist())
    ]
    done = np.cumsum(traces.busy[i][: len(readings)] / 100) * INTERVAL * STEPS_PER_BUSY_S
    seconds = len(rows) * INTERVAL
    ended = EndedRun(name="0001", role="simulated", outcome=Outcome.COMPLETED, duration_s=seconds)
    log = _log(done, float(traces.start[i]), float(traces.end[i]))
    found = evidence.build(ended, RunReadings(samples=SampleTable(rows), log=log))
    return Run(level, seconds, found, (found.utilisation or 0.0) - level)


def _log(done: Floats, start: float, end: float) -> LogSummary:
    """A log that counts steps once a second."""
    rate = float(done[-1]) / (end - start)
    times = [(int(done[k]), INTERVAL * (k + 1)) for k in range(1, len(done), 2) if done[k] >= 1]
    return LogSummary(
        loss_name="loss",
        points=50,
        first=2.0,
        last=1.0,
        trend=Trend.CONVERGING,
        steps=int(done[-1]),
        step_unit="step",
        step_times=tuple(times),
        steps_per_s=rate,
        progress_per_s=rate,
        rate_source="arrival",
    )
