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
    one; `mem_total_mb` is what it has. `mem_util` is the share of time in which its memory was read or
    written, percent. `throttle` is the share of the window's time, 0 to 1, in which each reason was set that
    a driver gives for its clocks, `throttled` that of any which slows a device below what its load needs.
    `energy_j` is what it used in the window, `energy_by` says by what: the driver's `counter` or the `power`
    over time. `power_limit_w` is what was enforced at the launch, `link` what it hangs on (`PCIe 4 x16, 18
    NVLinks`). None: unknown.

    `working` is the share of the window, 0 to 1, in which it drew the power of its working phases,
    `working_w`, and not that of waiting, `waiting_w`; `working_reason` says why it is unknown. `power_error`
    is the standard error of the mean power in W, widened for autocorrelation. `node` is the one that it is
    on, of a run on several nodes.
    """

    index: int
    uuid: str
    name: str
    gpu_util: Spread | None = None
    standard_error: float | None = None
    mem_used_mb: float | None = None
    mem_mean_mb: float | None = None
    reason: str | None = None
    mem_total_mb: float | None = None
    mem_util: Spread | None = None
    power_w: Spread | None = None
    sm_clock_mhz: Spread | None = None
    mem_clock_mhz: Spread | None = None
    temperature_c: Spread | None = None
    throttle: dict[str, float] | None = None
    throttled: float | None = None
    energy_j: float | None = None
    energy_by: str | None = None
    power_limit_w: float | None = None
    working: float | None = None
    waiting_w: float | None = None
    working_w: float | None = None
    working_reason: str | None = None
    power_error: float | None = None
    link: str | None = None
    node: str | None = None


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


class AwaitedDevice(Record):
    """The device that the others of a run wait for, at waiting power, in the window.

    `state` is what it does meanwhile: `idle`, or `works` alone. `share` is the part of the window, 0 to 1,
    `times` how often, `length_s` how long each time on average, `alike` whether equally long each time,
    `every_s` the seconds from one to the next, None if they do not come regularly. `node` is as
    `DeviceEvidence` has it.
    """

    index: int
    uuid: str
    state: str
    share: float
    times: int
    length_s: float
    alike: bool
    every_s: float | None = None
    node: str | None = None
