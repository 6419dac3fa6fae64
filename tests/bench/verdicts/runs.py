"""Simulated runs as the product sees them: every trace becomes an `Evidence` by `core.evidence.build`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.bench.verdicts.traces import BASELINE, INTERVAL, Floats, Scenario, Traces, simulate

from gpudebug.core.evidence import build as evidence
from gpudebug.core.evidence.build import EndedRun, RunReadings
from gpudebug.core.records import Evidence, Outcome, Trend
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.trainlog import LogSummary

# Steps per busy second, for 4 steps a second at the baseline's level: work is conserved.
STEPS_PER_BUSY_S = 4 / (BASELINE / 100)
LOOK_EVERY = 5.0
"""Half of what lies between two looks for a certain answer: a plan is looked at when it is due."""
_DEVICE = "GPU-00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Look:
    """What a run has shown `seconds` after its launch, while it goes on."""

    seconds: float
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Run:
    """A completed run of `seconds` on the device, and what could be seen of it before its end."""

    seconds: float
    evidence: Evidence
    looks: tuple[Look, ...] = ()


@dataclass(frozen=True)
class Pool:
    """Runs of one command, to draw from; the arrays hold what simpler rules go by, one row a run.

    `late` is the mean after 5 s, `mean` the shipped window's, `counts` the readings of that window by
    value (0 to 100 %).
    """

    runs: tuple[Run, ...]
    seconds: Floats
    late: Floats
    mean: Floats
    counts: NDArray[np.integer[Any]]


def pool(
    scenario: Scenario, level: float, size: int, rng: np.random.Generator, *, steps_known: bool, looks: bool
) -> Pool:
    """`size` runs; with `steps_known` the log tells when steps were made, with `looks` runs keep those."""
    traces = simulate(scenario, level, size, rng)
    runs = tuple(_run(traces, i, steps_known, looks) for i in range(size))
    times = INTERVAL * np.arange(1, traces.utilisation.shape[1] + 1)
    with np.errstate(invalid="ignore"):
        late = np.nanmean(np.where(times > 5.0, traces.utilisation, np.nan), axis=1)
    return Pool(
        runs=runs,
        seconds=np.array([r.seconds for r in runs]),
        late=late,
        mean=np.array([np.nan if r.evidence.utilisation is None else r.evidence.utilisation for r in runs]),
        counts=np.array([_counts(r.evidence, traces.utilisation[i]) for i, r in enumerate(runs)]),
    )


def _counts(found: Evidence, readings: Floats) -> NDArray[np.integer[Any]]:
    times = INTERVAL * np.arange(1, len(readings) + 1)
    inside = ~np.isnan(readings)
    if found.window is not None:
        inside &= (times > found.window.start_s) & (times <= found.window.end_s + 1e-9)
    return np.bincount(readings[inside].astype(int), minlength=101)


def _run(traces: Traces, i: int, steps_known: bool, looks: bool) -> Run:
    readings = traces.utilisation[i][~np.isnan(traces.utilisation[i])]
    rows = [
        Sample(INTERVAL * (k + 1), value, None, 0, _DEVICE, 1, None, None)
        for k, value in enumerate(readings.tolist())
    ]
    done = np.cumsum(traces.busy[i][: len(readings)] / 100) * INTERVAL * STEPS_PER_BUSY_S
    start, end = float(traces.start[i]), float(traces.end[i])

    def seen(until: float, ended: bool) -> Evidence:
        count = len(rows) if ended else int(until / INTERVAL)
        outcome = Outcome.COMPLETED if ended else Outcome.ENDED_EARLY
        run = EndedRun(name=f"{i:04d}", role="simulated", outcome=outcome, duration_s=until)
        log = _log(done[:count], start, min(until, end), steps_known)
        return evidence.build(run, RunReadings(samples=SampleTable(rows[:count]), log=log))

    last = len(rows) * INTERVAL
    marks = np.arange(start + LOOK_EVERY, end - 1e-9, LOOK_EVERY) if looks else ()
    return Run(
        seconds=last,
        evidence=seen(last, ended=True),
        looks=tuple(Look(float(m), seen(float(m), ended=False)) for m in marks),
    )


def _log(done: Floats, start: float, until: float, steps_known: bool) -> LogSummary:
    """A log that counts steps once a second; without `steps_known` it tells only their mean rate."""
    steps = int(done[-1]) if len(done) else 0
    rate = float(done[-1]) / (until - start) if len(done) and until > start else None
    times: Sequence[tuple[int, float]] = ()
    if steps_known:
        times = [(int(done[k]), INTERVAL * (k + 1)) for k in range(1, len(done), 2) if done[k] >= 1]
    return LogSummary(
        loss_name="loss",
        points=50,
        first=2.0,
        last=1.0,
        trend=Trend.CONVERGING,
        steps=steps,
        step_unit="step",
        step_times=tuple(times),
        steps_per_s=rate,
        progress_per_s=rate,
        rate_source="arrival" if steps_known else "printed",
    )
