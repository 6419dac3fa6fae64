"""Recordings of `doctor --gpu` made by rule: what each GPU is made to do, and what a driver reports of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support import nvml

from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.hardware.plan import Load, plain_uuid, schedule
from gpudebug.core.hardware.recording import Gpu, GpuRecording, Machine, parse_recording
from gpudebug.core.hardware.table import checks_of
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row

INTERVAL, PHASE_S, STARTED_S = 0.1, 4.0, 0.37
_SLICE_S = 0.5
Rule = Callable[[int, Load | None], DeviceReading]
"""What a GPU's row says, by its index and the load that it has."""


def healthy(index: int, load: Load | None) -> DeviceReading:
    """A GPU that shows what it does: power by its load, least of all for one thread that spins."""
    duty = load.duty if load else 0.0
    watts = 0 if load is None else 400 * duty if load.kernel == "work" else 30 * duty
    return DeviceReading(
        gpu_util=100 * duty,
        mem_used_mb=2048.0 + 256 * (load is not None),
        power_w=80 + watts,
        throttle="none" if load else "gpu_idle",
        new_samples=1,
        foreign_procs=0,
    )


def machine(count: int = 1, **changes: Any) -> Machine:
    """GPUs that sampler and CUDA see alike."""
    gpus = tuple(Gpu(i, nvml.uuid(i), "NVIDIA Stand-in 100", "550.54.15") for i in range(count))
    found = Machine(gpus, 12040, tuple(plain_uuid(gpu.uuid) for gpu in gpus))
    return found._replace(**changes)


def texts(
    count: int = 1,
    rule: Rule = healthy,
    notes: Mapping[str, object] | None = None,
    more: tuple[Mapping[str, object], ...] = (),
    until: float = 1e9,
) -> tuple[str, str, str]:
    """samples.csv, train.log and sampler.json of a run that was as `rule` has it.

    The loading process starts STARTED_S after the launch; nothing is recorded from `until` on.
    `notes` replace the sampler's, `more` are lines in front of the loads.
    """
    uuids = [nvml.uuid(i) for i in range(count)]
    phases = schedule(uuids, PHASE_S)
    events: list[tuple[float, dict[str, object]]] = [(0.0, {"kind": "begin"})]
    for uuid in uuids:
        timer = {"asked_s": 0.05, "event_s": 0.0501, "host_s": 0.0503}
        copy = {"bytes": 32 << 20, "to_s": 0.002, "back_s": 0.003, "same": True}
        events += [
            (0.0, {"kind": "timer", "gpu": uuid, **timer}),
            (0.0, {"kind": "copy", "gpu": uuid, **copy}),
        ]
    events += [(0.0, dict(line)) for line in more]
    loaded: list[tuple[float, float, Load]] = []
    for number, phase in enumerate(phases):
        began = number * PHASE_S
        for load in phase.loads:
            loaded.append((began, began + PHASE_S, load))
            events.append((began, {"kind": "memory", "gpu": load.uuid, "bytes": 256 << 20}))
            for k in range(int(PHASE_S / _SLICE_S) - 1):
                span = {"from": began + k * _SLICE_S, "to": began + (k + 1) * _SLICE_S}
                line = {"gpu": load.uuid, "kernel": load.kernel, "busy_s": load.duty * _SLICE_S, **span}
                events.append((span["to"], {"kind": "slice", "phase": phase.name, **line}))
        span = {"from": began, "to": began + PHASE_S}
        events.append((began + PHASE_S, {"kind": "phase", "name": phase.name, **span}))
    events.append((len(phases) * PHASE_S, {"kind": "end"}))
    events = sorted((e for e in events if e[0] < until), key=lambda event: event[0])
    lines = [(at + STARTED_S, json.dumps({**line, "at": at}) + "\n") for at, line in events]
    rows = []
    ticks = int(min(until, len(phases) * PHASE_S + 0.5) / INTERVAL)
    for tick in range(ticks):
        elapsed = tick * INTERVAL + 0.002
        size = sum(len(text) for at, text in lines if at <= elapsed)
        for index, uuid in enumerate(uuids):
            now = elapsed - STARTED_S
            load = next((one for a, b, one in loaded if a <= now < b and one.uuid == uuid), None)
            row = rule(index, load)
            rows.append(
                csv_row(row._replace(elapsed=elapsed, gpu_index=index, gpu_uuid=uuid, log_bytes=size))
            )
    joules = {uuid: _joules(rows, uuid) for uuid in uuids}
    said = {
        "source": "samples",
        "interval": INTERVAL,
        "ticks": ticks,
        "missed": 0,
        "restarts": 0,
        "lost": None,
    }
    said |= {"missing": {}, "energy_j": joules, **(notes or {})}
    return HEADER + "".join(rows), "".join(text for _, text in lines), json.dumps(said)


def _joules(rows: list[str], uuid: str) -> float:
    cells = (row.split(",") for row in rows if uuid in row)
    return sum(float(cell[7] or 0) * INTERVAL for cell in cells)


def recording(*args: Any, **kwargs: Any) -> GpuRecording:
    """The same, read."""
    samples, log, notes = texts(*args, **kwargs)
    return parse_recording(samples, log.encode(), notes)


def table(
    count: int = 1, rule: Rule = healthy, machine_: Machine | None = None, **kwargs: Any
) -> dict[str, DoctorCheck]:
    """The checks of such a run, by name."""
    checks = checks_of(machine_ or machine(count), recording(count, rule, **kwargs))
    found = {check.name: check for check in checks}
    assert len(found) == len(checks)
    return found
