"""What a series of readings or printed values comes to: windows, spreads, devices and latencies."""

from __future__ import annotations

from gpudebug.core.records.base import Record


class Window(Record):
    """The steady window that the statistics summarise; seconds since launch.

    `rule` says what found it: `steps` of the log, steps of the `probe`, `mser5` of the readings, or a
    `fixed` warm-up; `samples` counts the device readings inside.
    """

    start_s: float
    end_s: float
    samples: int
    rule: str

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


class Spread(Record):
    """Time-weighted mean and percentiles of a series inside the window, in the series' unit."""

    mean: float
    p5: float
    p50: float
    p95: float


class DeviceEvidence(Record):
    """What one device did in the window. `reason` says why `gpu_util` is unknown.

    `mem_used_mb` is the most of the whole run, `mem_mean_mb` the mean in the window, of the whole run without
    one.
    """

    index: int
    uuid: str
    name: str
    gpu_util: Spread | None = None
    standard_error: float | None = None
    mem_used_mb: float | None = None
    mem_mean_mb: float | None = None
    reason: str | None = None


class LatencyEvidence(Record):
    """How long one inference took, in seconds, as the program printed it.

    `count` of them were summarised, after `warmup` leading ones were cut; `count` is None if the program
    printed figures over all of them only. `p50_error`, `p95_error` and `p99_error` are the standard errors of
    the logarithms of these percentiles within this run, widened for autocorrelation.
    """

    count: int | None = None
    warmup: int = 0
    first_s: float | None = None
    mean_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    p50_error: float | None = None
    p95_error: float | None = None
    p99_error: float | None = None
