"""One run's samples and log -> the facts that a verdict may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpudebug.core import stats
from gpudebug.core.models import (
    DeviceEvidence,
    DeviceInfo,
    Evidence,
    Failure,
    LossEvidence,
    Outcome,
    Trend,
    Window,
)
from gpudebug.core.samples import Sample, Samples

if TYPE_CHECKING:
    from gpudebug.core.trainlog import LogSummary

# A run's window must reach this after warm-up: at NVML's own period of up to 1 s, less than five
# independent readings say nothing.
MIN_RUN_WINDOW_S = 5.0
# A device that answered for less of the window than this has no figure.
MIN_COVERAGE = 0.9
# Warm-up ends at this optimizer step, or at this share of all steps, whichever is later.
WARMUP_STEPS = 10
WARMUP_SHARE = 0.05
SPARK = 40


@dataclass(frozen=True, slots=True)
class _Reading:
    """A device's utilisation over the `width` seconds that end at `end`."""

    end: float
    width: float
    value: float


def build(
    *,
    run: str,
    role: str,
    outcome: Outcome,
    samples: Samples,
    log: LogSummary,
    warmup: float | None = None,
    exit_status: int | None = None,
    signal: int | None = None,
    failure: Failure | None = None,
    duration_s: float | None = None,
    devices: Sequence[DeviceInfo] = (),
    missing: dict[str, str] | None = None,
    advice: Callable[[LogSummary], str | None] | None = None,
) -> Evidence:
    """Summarise one run. `warmup` is a fixed span in seconds, None lets the data decide.

    A figure that the run did not yield is None, with the reason beside it.
    """
    missing = missing or {}
    names = {d.uuid: d.name for d in devices}
    series = {key: _readings(samples.rows, key) for key in samples.devices}
    window, reason = find_window(series, log, warmup)
    per_device = tuple(
        _device(index, uuid, names.get(uuid, ""), readings, window, reason, missing, samples.rows)
        for (index, uuid), readings in series.items()
    )
    spreads = [d.gpu_util for d in per_device]
    known = [s.mean for s in spreads if s is not None]
    complete = bool(known) and len(known) == len(spreads)
    errors = [d.standard_error for d in per_device if d.standard_error is not None]
    return Evidence(
        run=run,
        role=role,
        outcome=outcome,
        exit_status=exit_status,
        signal=signal,
        failure=failure,
        duration_s=duration_s,
        window=window,
        window_reason=reason if window is None else None,
        devices=per_device,
        utilisation=math.fsum(known) / len(known) if complete else None,
        standard_error=max(errors) if complete and errors else None,
        steps=log.steps,
        steps_per_s=step_rate(log, window),
        data_s=log.data_s,
        update_s=log.update_s,
        framework=log.framework,
        loss=LossEvidence(
            name=log.loss_name,
            trend=log.trend,
            points=log.points,
            first=_finite(log.first),
            last=_finite(log.last),
            advice=advice(log) if advice and log.trend is Trend.UNKNOWN else None,
        ),
        peak_rss_mb=max((r.rss_mb for r in samples.rows if r.rss_mb is not None), default=None),
        peak_device_mb=max((r.mem_used_mb for r in samples.rows if r.mem_used_mb is not None), default=None),
        missing=missing,
        spark=_spark(series),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _readings(rows: Sequence[Sample], key: tuple[int, str]) -> list[_Reading]:
    """Readings with new driver samples, each with the span since the reading before it."""
    out: list[_Reading] = []
    previous = 0.0
    for row in rows:
        if (row.gpu_index, row.gpu_uuid) != key or row.gpu_util is None or row.new_samples == 0:
            continue
        if row.elapsed > previous:
            out.append(_Reading(row.elapsed, row.elapsed - previous, row.gpu_util))
            previous = row.elapsed
    return out


def find_window(
    series: dict[tuple[int, str], list[_Reading]], log: LogSummary, warmup: float | None
) -> tuple[Window | None, str | None]:
    """The steady window, or None with the reason.

    Steps known: from the first time at or after step max(10, 5 % of all), to the last step's time.
    Else MSER-5 on the devices' mean from both ends (the tail at most a quarter). A fixed `warmup`
    counts from launch and replaces the start.
    """
    longest: list[_Reading] = max(series.values(), key=len, default=[])
    if not longest:
        return None, "no device reading"
    last = longest[-1].end
    bounds = _step_bounds(log)
    if bounds is not None:
        start, end, rule = bounds[0], min(bounds[1], last), "steps"
    else:
        start, end = _mser_bounds(longest)
        rule = "mser5"
    if warmup is not None:
        start, rule = warmup, "fixed"
    if end - start < MIN_RUN_WINDOW_S:
        left = f"{max(end - start, 0):.1f} s after warm-up"
        return None, f"the window is too short: {left}, at least {MIN_RUN_WINDOW_S:g} s needed"
    count = sum(1 for readings in series.values() for r in readings if start < r.end <= end)
    return Window(start_s=round(start, 3), end_s=round(end, 3), samples=count, rule=rule), None


def _step_bounds(log: LogSummary) -> tuple[float, float] | None:
    times = [(step, t) for step, t in log.step_times if t is not None]
    if len(times) < 4 or times[-1][0] <= times[0][0]:
        return None
    threshold = max(WARMUP_STEPS, WARMUP_SHARE * times[-1][0])
    start = next((t for step, t in times if step >= threshold), None)
    return None if start is None or start >= times[-1][1] else (start, times[-1][1])


def _mser_bounds(readings: Sequence[_Reading]) -> tuple[float, float]:
    values = [r.value for r in readings]
    head = stats.mser5(values)
    rest = values[head:]
    tail = min(stats.mser5(rest[::-1]), len(rest) // 4)
    start = readings[head - 1].end if head else readings[0].end - readings[0].width
    return start, readings[len(readings) - 1 - tail].end


def step_rate(log: LogSummary, window: Window | None) -> float | None:
    """Steps per second inside the window from the arrival times of steps, else the log's own rate."""
    if window is not None:
        inside = [(s, t) for s, t in log.step_times if t is not None and window.start_s <= t <= window.end_s]
        if len(inside) >= 2 and inside[-1][1] - inside[0][1] >= MIN_RUN_WINDOW_S / 2:
            return (inside[-1][0] - inside[0][0]) / (inside[-1][1] - inside[0][1])
    return log.steps_per_s


def _device(
    index: int,
    uuid: str,
    name: str,
    readings: Sequence[_Reading],
    window: Window | None,
    window_reason: str | None,
    missing: dict[str, str],
    rows: Sequence[Sample],
) -> DeviceEvidence:
    memory = max(
        (r.mem_used_mb for r in rows if r.gpu_uuid == uuid and r.mem_used_mb is not None), default=None
    )
    blank = DeviceEvidence(index=index, uuid=uuid, name=name, mem_used_mb=memory)
    if not readings:
        return blank.model_copy(update={"reason": missing.get("gpu_util", "the device gave no utilisation")})
    if window is None:
        return blank.model_copy(update={"reason": window_reason})
    inside = [replace(r, width=min(r.width, r.end - window.start_s)) for r in readings if _in(r, window)]
    covered = math.fsum(r.width for r in inside)
    if covered < MIN_COVERAGE * window.duration_s:
        share = 100 * covered / window.duration_s
        return blank.model_copy(update={"reason": f"readings cover only {share:.0f}% of the window"})
    values = [r.value for r in inside]
    return blank.model_copy(
        update={
            "gpu_util": stats.spread(values, [r.width for r in inside]),
            "standard_error": stats.standard_error(values),
        }
    )


def _in(reading: _Reading, window: Window) -> bool:
    return window.start_s < reading.end <= window.end_s + 1e-9


def _spark(series: dict[tuple[int, str], list[_Reading]]) -> tuple[float, ...]:
    """Means of the utilisation of all devices in at most 40 equal spans of the run."""
    readings = [r for values in series.values() for r in values]
    if not readings:
        return ()
    end = max(r.end for r in readings)
    sums = [[0.0, 0.0] for _ in range(SPARK)]
    for r in readings:
        bin_ = min(SPARK - 1, int(SPARK * (r.end - r.width / 2) / end))
        sums[bin_][0] += r.value * r.width
        sums[bin_][1] += r.width
    return tuple(round(total / width, 1) for total, width in sums if width > 0)
