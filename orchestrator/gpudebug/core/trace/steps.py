"""The steps that the profiler marked: wall time, busy share, kernels and waiting for data of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.devices import TraceDevice
from gpudebug.core.trace.events import EventKind
from gpudebug.core.trace.launches import Launches
from gpudebug.core.trace.spans import Cover, Floats, Union

# Rows of the table: the first half, and the slowest of the others.
ROWS = 40


def steps(recording: Recording, found: list[TraceDevice], launches: Launches) -> dict[str, Any] | None:
    """`count`, medians and the `table`; None if no step was marked. Busy shares are means over devices."""
    if not recording.steps:
        return None
    numbers = sorted(recording.steps, key=lambda n: recording.steps[n])
    span = np.array([recording.steps[n] for n in numbers])
    wall = span[:, 1] - span[:, 0]
    loaders = recording.hosts.loaders
    waited = Cover(loaders.union()).within(span[:, 0], span[:, 1]) if len(loaders) else None
    busy = np.mean([_busy(d, span) for d in found], axis=0) if found else None
    kernels = _kernels(found, launches, span) if found else None
    with np.errstate(divide="ignore", invalid="ignore"):
        share = None if busy is None else busy / wall
    first = list(range(min(len(numbers), ROWS // 2)))
    slow = sorted(range(len(first), len(numbers)), key=lambda i: -wall[i])[: ROWS - len(first)]
    return {
        "count": len(numbers),
        "wall_p50_s": float(np.median(wall)) / 1e6,
        "wall_max_s": float(wall.max()) / 1e6,
        "busy_share": None if busy is None or not wall.sum() else float(busy.sum() / wall.sum()),
        "data_wait_share": None if waited is None or not wall.sum() else float(waited.sum() / wall.sum()),
        "kernels_per_step": None if kernels is None else float(kernels.mean()),
        "table": [
            {
                "step": numbers[i],
                "wall_s": float(wall[i]) / 1e6,
                "busy_share": None if share is None or not wall[i] else float(share[i]),
                "kernels": None if kernels is None else int(kernels[i]),
                "data_wait_s": None if waited is None else float(waited[i]) / 1e6,
            }
            for i in sorted(first + slow)
        ],
    }


def _busy(device: TraceDevice, span: Floats) -> Floats:
    """Busy microseconds of a device in each step."""
    union, busy = Union(), np.zeros(len(span))
    for part in device.parts():
        busy += Cover(union.add(part.start, part.end)).within(*span.T)
    return busy


def _kernels(found: list[TraceDevice], launches: Launches, span: Floats) -> Floats:
    """Kernels of each step, by the moment of their launch, else of their start."""
    count = np.zeros(len(span))
    for device in found:
        for part in device.parts():
            kernel = part.kind == EventKind.KERNEL
            when, launch = part.start[kernel], part.launch[kernel]
            known = launch >= 0
            when[known] = launches.start[launch[known]]
            at = np.searchsorted(span[:, 0], when, side="right") - 1
            inside = (at >= 0) & (when < span[at, 1])
            count += np.bincount(at[inside], minlength=len(span))
    return count
