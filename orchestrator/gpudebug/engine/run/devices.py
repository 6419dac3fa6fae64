"""What was seen of runs as it is answered, from evidence that is at hand or stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from gpudebug.core.answers.log import FailureLines, LatencyFigures
from gpudebug.core.answers.sample import DeviceMemory, FigureSpread, RunDevices, SampledDevice, SampledWindow
from gpudebug.core.records import (
    DeviceEvidence,
    DeviceInfo,
    Evidence,
    Failure,
    LatencyEvidence,
    Spread,
)
from gpudebug.core.statistics.across import across


def run_devices(stored: Sequence[Mapping[str, Any]]) -> list[RunDevices]:
    """The devices of each evidence.json, as it was read, that has several; none of what it cannot be."""
    found = []
    for e in stored:
        try:
            devices = tuple(DeviceEvidence.model_validate(d) for d in e.get("devices") or ())
        except ValidationError:
            continue
        if len(devices) > 1:
            rows = tuple(map(sampled, devices))
            found.append(RunDevices(run=str(e["run"]), devices=rows, across=across(devices)))
    return found


def devices_in(evidence: Evidence, recorded: Sequence[DeviceInfo] = ()) -> tuple[SampledDevice, ...]:
    """Return what each device of a run did in its window; `recorded` are those of run.json."""
    cores = {d.uuid: d.cores for d in recorded}
    return tuple(sampled(d, cores.get(d.uuid)) for d in evidence.devices)


def sampled(d: DeviceEvidence, cores: float | None = None) -> SampledDevice:
    """One device as it is answered; `cores` are those of the CPU stand-in."""
    return SampledDevice(
        index=d.index,
        uuid=d.uuid,
        name=d.name,
        gpu_util=_spread(d.gpu_util),
        reason=d.reason,
        memory=DeviceMemory(mean_mb=d.mem_mean_mb, peak_mb=d.mem_used_mb)
        if d.mem_mean_mb is not None and d.mem_used_mb is not None
        else None,
        mem_total_mb=d.mem_total_mb,
        mem_util=_spread(d.mem_util),
        power_w=_spread(d.power_w),
        sm_clock_mhz=_spread(d.sm_clock_mhz),
        mem_clock_mhz=_spread(d.mem_clock_mhz),
        temperature_c=_spread(d.temperature_c),
        throttle=d.throttle,
        throttled=d.throttled,
        energy_j=d.energy_j,
        energy_by=d.energy_by,
        power_limit_w=d.power_limit_w,
        working=d.working,
        working_reason=d.working_reason,
        link=d.link,
        node=d.node,
        cores=cores,
    )


def _spread(found: Spread | None) -> FigureSpread | None:
    return FigureSpread(**found.model_dump()) if found else None


def failure_in(failure: Failure | None) -> FailureLines | None:
    """Return why a run failed, and the lines that say so; None for one that did not."""
    return FailureLines(class_=failure.kind, lines=tuple(failure.lines)) if failure else None


def window_in(evidence: Evidence) -> SampledWindow | None:
    """Return the steady window of a run."""
    found = evidence.window
    return SampledWindow(start_s=found.start_s, end_s=found.end_s, samples=found.samples) if found else None


def latency_in(found: LatencyEvidence | None) -> LatencyFigures | None:
    """Return the latencies of a log."""
    if found is None:
        return None
    return LatencyFigures(**found.model_dump(exclude={"p50_error", "p95_error", "p99_error"}))
