"""The parts of records of a run: how it ended, where, its devices, what it processed and how it learned."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gpudebug.core.words import DeviceKind, Trend, counted, device_kind


class Record(BaseModel):
    """A frozen record; unknown keys of a newer minor version are ignored when it is read back."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Conditions(Record):
    """What the samples of the window say of the machine, the worst of the run's devices; None: unknown.

    `foreign_procs` is the largest count of other processes computing on the device, `foreign_share` the
    share of readings with any, `foreign_on` the index of the device that had them, if there are several,
    `foreign_uuid` its UUID.
    `foreign_cpu` is the mean of that column, percent of the run's cores; `sm_clock_mhz` the mean clock;
    `throttle` the share of readings by reason. `read_mb_s` is what the run read from disk: what the page
    cache holds is not among it. `cpu_cores` is the CPU time a second of its processes, `cores` how many cores
    they may use. `cpu_wait`, `cpu_throttled`, `cpu_stolen` and `foreign_demand` are means of these columns:
    percent of one core, and the last of the run's cores.
    """

    foreign_procs: int | None = None
    foreign_share: float | None = None
    foreign_cpu: float | None = None
    sm_clock_mhz: float | None = None
    throttle: dict[str, float] | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    cpu_cores: float | None = None
    cores: float | None = None
    cpu_wait: float | None = None
    cpu_throttled: float | None = None
    cpu_stolen: float | None = None
    foreign_demand: float | None = None
    foreign_on: int | None = None
    foreign_uuid: str | None = None


class RunNode(Record):
    """The node of a cluster's job that a run was launched on, and what of it the job may use.

    `name` is the node's in the cluster; `boot` the kernel's id of its boot. `allocation` is the job with how
    often it was started again, `412` or `412.1`, and `nodes` are all of its nodes. `cores` are the numbers of
    the cores that the job's step may use, in order; `memory_limit_mb` is the least limit of the control
    groups of the step, None also if there is none. `attempt` counts the tries at this run: 1, and 2 if one
    before it was cut off. `unsampled` says why the devices of another node are unknown, `clocks` what its
    monotonic clock was ahead of the first one's in seconds, by node.
    """

    name: str
    allocation: str | None = None
    nodes: tuple[str, ...] = ()
    boot: str | None = None
    cores: tuple[int, ...] = ()
    memory_limit_mb: float | None = None
    attempt: int | None = None
    unsampled: dict[str, str] = {}
    clocks: dict[str, float] = {}


class DeviceInfo(Record):
    """One device of a run. `uuid` is `CPU` for the CPU stand-in; `missing` says why it lacks a column.

    `clocks_mhz` are the applications clocks that are set, of processor and memory; `processes` are the PIDs
    of those that computed on it before the launch. `link` is the bus that it hangs on: `PCIe 4 x16`, the
    newest generation that both ends know and the lanes in use; `nvlinks` are the NVLinks that are up, None
    if it has none or the driver reports none. `node` is the one that it is on, of a run on several nodes.
    """

    index: int
    uuid: str
    name: str
    kind: str
    memory_total_mb: float | None = None
    driver: str | None = None
    cores: float | None = None
    clocks_mhz: tuple[float, float] | None = None
    power_limit_w: float | None = None
    processes: tuple[int, ...] = ()
    link: str | None = None
    nvlinks: int | None = None
    missing: dict[str, str] = {}
    node: str | None = None

    @property
    def can(self) -> DeviceKind:
        return device_kind(self.kind)

    @property
    def links(self) -> str | None:
        """`PCIe 4 x16, 18 NVLinks`; None if nothing is known."""
        nvlinks = None
        if self.nvlinks is not None:
            nvlinks = counted(self.nvlinks, "NVLink")
        return ", ".join(text for text in (self.link, nvlinks) if text) or None


class Failure(Record):
    """Why a run failed, with the log lines that say so. `kind` is one of the documented failure classes.

    `own_limit_mb` is the memory limit that the run itself had filled when the kernel killed a process of it.
    """

    kind: str
    lines: tuple[str, ...] = ()
    own_limit_mb: float | None = None


class Counted(Record):
    """What the writer or follower of a file counted of it: its first `bytes` bytes and their SHA-256."""

    bytes: int
    sha256: str


class ServerRun(Record):
    """The server of a run: its command with `{port}` in it, names of the variables that gpudebug.yaml sets.

    `ready_s` is how long it took to be ready, None if it never was; `died` says that its end was the run's.
    One of `exit_status` and `signal` says how it ended.
    """

    command: str
    argv: tuple[str, ...]
    cwd: str
    environment: tuple[str, ...] = ()
    ready_s: float | None = None
    died: bool = False
    exit_status: int | None = None
    signal: int | None = None


class PlannedEnd(Record):
    """Where gpudebug ended a run by its plan: seconds since launch, and bytes of its log by then.

    What the program did and printed later, because it was asked to end, is in no figure. `window_s` is the
    planned window.
    """

    at_s: float
    log_bytes: int
    window_s: float


class LossEvidence(Record):
    """The training loss. `points` counts the printed values, redraws of one value once.

    `curve` is at most 40 (step, mean loss), over equal spans of steps; 160 of a run that gpudebug ended.
    `begin` is the first 30 (step, loss) as printed; empty if steps are not known or are of several ranks.
    `of` says whose loss it is where several ranks print one, and since when it is judged.
    """

    name: str | None = None
    trend: Trend = Trend.UNKNOWN
    points: int = 0
    first: float | None = None
    last: float | None = None
    advice: str | None = None
    curve: tuple[tuple[float, float], ...] = ()
    begin: tuple[tuple[int, float], ...] = ()
    of: str | None = None


class WorkRate(Record):
    """What a run processed a second, in `unit`: environment steps, tokens, samples, optimizer steps, epochs
    or the user's own `log:NAME`; `source` names the counter or the figure that says so."""

    unit: str
    per_s: float
    source: str


class WorkUnit(Record):
    """The unit of work of a campaign and what it is read from; `chosen` is False if a person has set it."""

    unit: str
    source: str
    chosen: bool = True


class LearningSeries(Record):
    """One figure of learning that a run showed: `metric` is reward, loss or the user's own `log:NAME`.

    `source` is the log, or the file that the run wrote; `curve` is at most 40 (work done, mean value), the
    work of the counter or the unit `over`. `finite` is False if a value was NaN or infinite.
    """

    metric: str
    name: str
    source: str
    points: int
    first: float | None = None
    last: float | None = None
    finite: bool = True
    over: str | None = None
    curve: tuple[tuple[float, float], ...] = ()


class LearningUnit(Record):
    """What learning is judged by: one series of the baseline, and whether `higher` is better.

    `chosen` is False if a person has set it.
    """

    metric: str
    name: str
    source: str
    direction: str = "higher"
    chosen: bool = True


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


class PhaseEvidence(Record):
    """What one phase of a run shows: the longest of its `stretches`, from `start_s` to `end_s` after launch.

    `seconds` is how long all of them took together; `by` says what cut the run: the `log` or the
    `optimizers`, as the probe saw them step. `window` is the steady part of the longest stretch (None, with
    the reason, if it is too short), of which the figures are, as those of Evidence; `losses` are the first
    and the last one in it.
    """

    name: str
    by: str
    start_s: float
    end_s: float
    seconds: float
    stretches: int = 1
    window: Window | None = None
    window_reason: str | None = None
    utilisation: float | None = None
    standard_error: float | None = None
    steps_per_s: float | None = None
    steps_by: str | None = None
    progress_per_s: float | None = None
    samples_per_s: float | None = None
    step_time_p50_s: float | None = None
    step_time_p95_s: float | None = None
    joules_per_step: float | None = None
    logged: dict[str, float] = {}
    work: tuple[WorkRate, ...] = ()
    losses: tuple[float, float] | None = None

    def is_named(self, name: str | None) -> bool:
        """Tell whether it has this name; letter case does not count."""
        return name is not None and self.name.casefold() == name.casefold()


class UsedRun(Record):
    """A run that a verdict used, with the digest of the evidence that it was judged by.

    `part` is baseline, trial, or crash (of an earlier version of the change's code); a `fresh` run of the
    baseline was made beside the trial.
    """

    name: str
    part: str
    fresh: bool = False
    evidence_sha256: str
