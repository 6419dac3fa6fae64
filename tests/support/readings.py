"""Samples and log summaries of imaginary runs, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.trainlog.reader import LogSummary

GPU = (0, "GPU-0")


def row(
    elapsed: float,
    gpu_util: float | None,
    device: tuple[int, str] = GPU,
    *,
    new: int | None = 1,
    mem: float | None = None,
) -> Sample:
    return Sample(elapsed, gpu_util, mem, device[0], device[1], new, None, None)


def sampled(
    level: Callable[[float], float | None],
    seconds: float,
    *,
    tick: float = 0.2,
    device: tuple[int, str] = GPU,
    skip: Callable[[float], bool] = lambda _: False,
) -> list[Sample]:
    """Rows of a device whose utilisation at time t is `level(t)`, a tick each but the skipped ones."""
    ticks = [round(tick * (i + 1), 6) for i in range(round(seconds / tick))]
    return [row(t, level(t - tick / 2), device) for t in ticks if not skip(t)]


def samples(*devices: Iterable[Sample]) -> SampleTable:
    return SampleTable(rows=sorted((r for rows in devices for r in rows), key=lambda r: r.elapsed))


def phases(*spans: tuple[float, float]) -> Callable[[float], float]:
    """(until, level) spans in time order."""

    def level(t: float) -> float:
        return next((value for until, value in spans if t <= until), spans[-1][1])

    return level


def steps_log(
    times: Sequence[tuple[int, float]] = (), *, unit: str | None = "step", rate: float | None = None
) -> LogSummary:
    """A log whose steps were seen at these times; `rate` is the one that it prints."""
    whole = unit == "step"
    return LogSummary(
        steps=times[-1][0] if times and whole else None,
        step_unit=unit if times else None,
        step_times=tuple(times),
        steps_per_s=rate if whole else None,
        progress_per_s=rate,
    )


def steady_steps(start: float, end: float, per_s: float, *, every: int = 1) -> list[tuple[int, float]]:
    """Steps printed as they are made, at this rate, seen at the next tick of 0.2 s."""
    count = int((end - start) * per_s)
    return [(n, round(int((start + n / per_s) / 0.2 + 1) * 0.2, 6)) for n in range(every, count + 1, every)]
