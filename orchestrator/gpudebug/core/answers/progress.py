"""How far a run is, as `status`, `watch` and `next` answer it."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.devices import DeviceValue


@dataclass(frozen=True, kw_only=True)
class RunProgress:
    """How far a run is. Seconds, percent; None is unknown.

    `gpu_util` is the mean of the run's samples so far, of at most sixteen parts of a long one; `runs_done`
    counts the sealed runs of the same command before it; `latency_s` is the median of the latencies printed
    last. Between two runs `run` is the last one. `least` is the least busy device of several.
    """

    run: str | None = None
    role: str | None = None
    hypothesis: int | None = None
    step: int | None = None
    steps: int | None = None
    left_s: float | None = None
    elapsed_s: float | None = None
    gpu_util: float | None = None
    loss: float | None = None
    latency_s: float | None = None
    runs_done: int = 0
    least: DeviceValue | None = None
