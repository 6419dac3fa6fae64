"""Recordings of devices that train together: steps, a pause on one device, and what a sampler reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from gpudebug.core.records import Window
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.samples.window import Device
from gpudebug.core.samples.working import WorkingShare, working

FINE_S = 0.01


@dataclass(frozen=True, slots=True)
class Card:
    """Power in W: at its limit, working, waiting in a collective, and idle in a job."""

    limit: float
    working: float
    waiting: float
    idle: float


H100 = Card(limit=700, working=530, waiting=150, idle=130)
A100_PCIE = Card(limit=300, working=240, waiting=82, idle=62)
T4 = Card(limit=70, working=66, waiting=30, idle=27)
CAPPED = Card(limit=400, working=398, waiting=148, idle=130)
CARDS = {"H100": H100, "A100 PCIe": A100_PCIE, "T4": T4, "H100 capped at 400 W": CAPPED}
EVERY = (1, 10, 50, 100, 500, 1000)
STEP_S = 0.05
PAUSE_S = 1.0


def uuid(index: int) -> str:
    return f"GPU-{index}"


@cache
def checkpoints(
    every: int,
    card: Card = H100,
    *,
    devices: int = 8,
    seconds: float = 240.0,
    culprit: int = 0,
    averaged_s: float = 0.0,
    util_s: float = 0.1,
    tick: float = 0.1,
    noise: float = 0.0,
    seed: int = 1,
    pause: float = PAUSE_S,
    works: bool = False,
) -> tuple[Sample, ...]:
    """`every` steps of 50 ms, then a pause: the `culprit` idles, or `works` alone, and the others wait."""
    period = every * STEP_S + pause

    def state(device: int, t: float) -> tuple[float, float]:
        if t % period < every * STEP_S:
            return 97.0, card.working
        if device == culprit:
            return (97.0, card.working) if works else (0.0, card.idle)
        return 98.0, card.waiting

    return tuple(recorded(state, devices, seconds, averaged_s, util_s, tick, noise, seed))


@cache
def healthy(
    card: Card = H100,
    *,
    devices: int = 8,
    seconds: float = 120.0,
    noise: float = 0.03,
    seed: int = 1,
    averaged_s: float = 0.0,
) -> tuple[Sample, ...]:
    """All devices work, each with a short wait for its loader now and then, which the others share."""
    draw = random.Random(seed)
    starts = [(draw.uniform(0, seconds), draw.randrange(devices), draw.uniform(0.05, 0.4)) for _ in range(40)]
    waits = {int(s / FINE_S) + k: d for s, d, width in starts for k in range(int(width / FINE_S))}

    def state(device: int, t: float) -> tuple[float, float]:
        late = waits.get(int(t / FINE_S + 0.5))
        if late is None:
            return 97.0, card.working
        return (0.0, card.idle) if late == device else (98.0, card.waiting)

    return tuple(recorded(state, devices, seconds, averaged_s, 0.1, 0.1, noise, seed))


def recorded(
    state: Callable[[int, float], tuple[float, float]],
    devices: int,
    seconds: float,
    averaged_s: float = 0.0,
    util_s: float = 0.1,
    tick: float = 0.1,
    noise: float = 0.0,
    seed: int = 1,
) -> list[Sample]:
    """What a sampler reads of devices in this `state` (percent, W): utilisation is the driver's mean over
    `util_s`, power over `averaged_s` (0: at the moment), with normal `noise` of that part of it."""
    draw = random.Random(seed)
    count = round(seconds / FINE_S)
    rows = []
    for device in range(devices):
        fine = [state(device, (i + 0.5) * FINE_S) for i in range(count)]
        busy = [0.0, *accumulate(u for u, _ in fine)]
        energy = [0.0, *accumulate(w for _, w in fine)]
        for k in range(1, round(seconds / tick) + 1):
            end = round(k * tick / FINE_S)
            util = _mean(busy, end, util_s)
            power = _mean(energy, end, averaged_s or FINE_S)
            rows.append(
                Sample(
                    round(k * tick, 3),
                    min(
                        100.0,
                        max(0.0, util + (draw.gauss(0, 100 * noise / 3) if noise and util > 5 else 0.0)),
                    ),
                    60000.0,
                    device,
                    uuid(device),
                    1,
                    None,
                    None,
                    power_w=power * (1 + draw.gauss(0, noise)) if noise else power,
                )
            )
    return sorted(rows, key=lambda row: row.elapsed)


def _mean(sums: list[float], end: int, over_s: float) -> float:
    start = max(0, end - max(1, round(over_s / FINE_S)))
    return (sums[end] - sums[start]) / (end - start)


def truly_working(every: int) -> float:
    """The share of the time that the steps take."""
    return every * STEP_S / (every * STEP_S + PAUSE_S)


def whole(rows: Sequence[Sample], start: float = 0.0) -> Window:
    return Window(start_s=start, end_s=rows[-1].elapsed, samples=len(rows), rule="fixed")


def shares_of(
    rows: Sequence[Sample], limit: float | None = None, start: float = 0.0
) -> dict[Device, WorkingShare]:
    """Of cards of one model with this limit."""
    by_device = SampleTable(rows=list(rows)).by_device
    return working(by_device, whole(rows, start), dict.fromkeys(by_device, limit))


def written(rows: Sequence[Sample], path: Path) -> Path:
    """As samples.csv."""
    lines = (
        csv_row(
            DeviceReading(
                elapsed=r.elapsed,
                gpu_util=round(r.gpu_util or 0.0, 1),
                mem_used_mb=r.mem_used_mb,
                gpu_index=r.gpu_index,
                gpu_uuid=r.gpu_uuid,
                power_w=round(r.power_w or 0.0, 2),
                new_samples=r.new_samples,
            )
        )
        for r in rows
    )
    path.write_text(HEADER + "".join(lines))
    return path
