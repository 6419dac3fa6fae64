"""Agreement with HolisticTraceAnalysis on the traces of its own tests.

Opt-in: GPUDEBUG_HTA_TRACES names a folder of its traces (tests/data of its repository), GPUDEBUG_HTA_PYTHON
an interpreter in which it is installed (`pip install HolisticTraceAnalysis`). With --run-heavy -s a table is
printed.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import SUPPORT

from gpudebug.core.errors import GpudebugError
from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.devices import Launches, TraceDevice, devices, streams, times
from gpudebug.core.trace.reader import TraceReader
from gpudebug.core.trace.tables import copies, kernels

SCRIPT = SUPPORT / "hta_values.py"

# Where both define a value and it may differ, by folder of the trace, and why.
KNOWN = {
    "simple_add": ("idle", "kernel"),  # a record of the host's waiting (cuda_sync) counts as work there
    "end_to_end": ("idle", "kernel"),
    "triton_example": ("",),  # operators that have an argument named stream count as work there
    "mtia_trace_single_rank": (
        "",
    ),  # not NVIDIA: events of a stream overlap, which gives negative idle time there
    "mtia_inference_trace": ("",),
}


@pytest.mark.heavy
def test_values_agree() -> None:
    folder, python = os.environ.get("GPUDEBUG_HTA_TRACES"), os.environ.get("GPUDEBUG_HTA_PYTHON")
    if not folder or not python:
        pytest.skip("GPUDEBUG_HTA_TRACES and GPUDEBUG_HTA_PYTHON are not set")
    paths = sorted(str(p) for p in Path(folder).rglob("*") if p.name.endswith((".json", ".json.gz")))
    said = json.loads(subprocess.run([python, str(SCRIPT), *paths], capture_output=True, check=True).stdout)
    wrong, compared = [], 0
    print(f"\n{'trace':<52} {'values':>6} {'agree':>6} {'idle here':>12} {'there':>12} us")
    for path in paths:
        pairs = list(compare(Path(path), said[path]))
        away = [p for p in pairs if not agrees(*p[1:])]
        compared += len(pairs)
        known = next((names for part, names in KNOWN.items() if part in Path(path).parts), ())
        wrong += [(path, *p) for p in away if not any(name in p[0] for name in known)]
        mine = {p[0]: p[1] for p in pairs}.get("idle")
        if pairs:
            name = str(Path(path).relative_to(folder))[-52:]
            print(
                f"{name:<52} {len(pairs):>6} {len(pairs) - len(away):>6} {mine:>12,.0f} "
                f"{said[path]['idle']:>12,.0f}"
            )
    assert wrong == []
    assert compared > 100


def agrees(mine: float, theirs: float, absolute: float) -> bool:
    return abs(mine - theirs) <= max(0.01 * abs(theirs), absolute)


def compare(path: Path, theirs: dict[str, Any]) -> Iterator[tuple[str, float, float, float]]:
    """(name, our value, theirs, absolute tolerance) of each value that both define."""
    recording = Recording()
    try:
        for batch in TraceReader([path.read_bytes()]).batches():
            recording.feed(batch)
    except GpudebugError:
        return
    recording.finish()
    launches = Launches(recording)
    found = [d for d in (launched(recording, d, launches) for d in devices(recording)) if len(d.start)]
    if len(found) != 1 or "idle" not in theirs:
        return
    [device] = found
    mine = times([device])
    assert mine is not None
    yield "idle", mine["idle_s"] * 1e6, theirs["idle"], 10
    yield "kernel", mine["span_s"] * 1e6, theirs["kernel"], 10
    yield "compute", mine["compute_s"] * 1e6, theirs["compute"], 10
    yield "non_compute", (mine["busy_s"] - mine["compute_s"]) * 1e6, theirs["non_compute"], 10
    if mine["communication_s"] and "overlap" in theirs:
        yield "overlap", mine["communication_overlapped_s"] / mine["communication_s"], theirs["overlap"], 0.01
    for stream in streams(recording, device, launches):
        number = stream["stream"]
        for key, name in (("host", "host_wait"), ("kernel", "kernel_wait"), ("other", "other")):
            if f"{name} of stream {number}" in theirs:
                where = f"{name} of stream {number}"
                yield where, stream[f"{key}_wait_s"] * 1e6, theirs[where], 10
        # The kernels of a CUDA graph are no launches there.
        graphs = "cudaGraphLaunch" in recording.names.ids
        if f"queue of stream {number}" in theirs and stream["queue_max"] and not graphs:
            yield f"queue of {number}", stream["queue_max"], theirs[f"queue of stream {number}"], 0
    for kernel in kernels(recording, found):
        told = [v for name, v in theirs.get("kernels", {}).items() if name[:160] == kernel["name"]]
        if len(told) == 1:
            yield kernel["name"], kernel["seconds"] * 1e6, told[0][0], 10
            yield kernel["name"], kernel["max_us"], told[0][1], 10
    if not recording.steps or len(recording.steps) == 1:
        yield from bandwidths(recording, theirs)
    delays = launches.delays(device.launch, device.start)
    if delays and delays["count"] == theirs.get("launches"):
        yield "launch_delay", delays["mean_delay_us"], theirs["launch_delay"], 1


def bandwidths(recording: Recording, theirs: dict[str, Any]) -> Iterator[tuple[str, float, float, float]]:
    rows = [r for r in copies(recording) if r["mean_gb_s"] is not None]
    for kind in {r["kind"] for r in rows}:
        where = f"bandwidth of {kind}"
        of = [r for r in rows if r["kind"] == kind]
        if where in theirs:
            mean = sum(r["mean_gb_s"] * r["count"] for r in of) / sum(r["count"] for r in of)
            yield where, mean, theirs[where], 0.001


def launched(recording: Recording, device: TraceDevice, launches: Launches) -> TraceDevice:
    """The part that they look at: with two steps or more, what was launched before the last began."""
    if len(recording.steps) < 2:
        return device
    begin = max(start for start, _ in recording.steps.values())
    early = device.launch >= 0
    early[early] = launches.start[device.launch[early]] < begin
    return device.part(early)
