"""The records that are on disk, frozen; the words that they share are in `words`.

Units, unless a name says otherwise: seconds, percent of utilisation, `_mb` is 2**20 bytes.
`None` is *unknown*; it is never written as 0.
"""

from __future__ import annotations

from gpudebug.core.records.base import Record
from gpudebug.core.records.inside import (
    LoadedFiles,
    ProbedCopies,
    ProbeEvidence,
    ProbeRank,
    ReadSite,
    SectionFigures,
    SectionsEvidence,
    Stacks,
    StacksEvidence,
)
from gpudebug.core.words import INFRASTRUCTURE, VERDICTS, Outcome, Result, Status, Trend, Word

__all__ = [
    "FORMAT_VERSION",
    "INFRASTRUCTURE",
    "VERDICTS",
    "Conditions",
    "Counted",
    "DeviceEvidence",
    "DeviceInfo",
    "Estimate",
    "Evidence",
    "Failure",
    "Gate",
    "LoadedFiles",
    "LossEvidence",
    "Manifest",
    "Outcome",
    "ProbeEvidence",
    "ProbeRank",
    "ProbedCopies",
    "ReadSite",
    "Record",
    "Result",
    "RunRecord",
    "SectionFigures",
    "SectionsEvidence",
    "Spread",
    "Stacks",
    "StacksEvidence",
    "Status",
    "Trend",
    "UsedRun",
    "Verdict",
    "Window",
    "Word",
]

FORMAT_VERSION = 1


class DeviceInfo(Record):
    """One device of a run. `uuid` is `CPU` for the CPU stand-in; `missing` says why it lacks a column.

    `clocks_mhz` are the applications clocks that are set, of processor and memory; `processes` are the PIDs
    of those that computed on it before the launch.
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
    missing: dict[str, str] = {}


class Failure(Record):
    """Why a run failed, with the log lines that say so. `kind` is one of the documented failure classes."""

    kind: str
    lines: tuple[str, ...] = ()


class Counted(Record):
    """What the writer or follower of a file counted of it: its first `bytes` bytes and their SHA-256."""

    bytes: int
    sha256: str


class RunRecord(Record):
    """run.json: what was launched, where and in what surroundings; completed when the run ends.

    `identity` holds what a baseline is valid for, a digest or name each: `command` (of the unmodified
    workload, its folder and variables), `tree`, `interpreter`, `device`. `change` is the intervention.
    `warmup_s` (None: found from the data) and `patterns` are how samples and log were read, `gpudebug` is the
    version that read them. `knobs` are the variables that steer libraries, `imports` the packages
    of the checkout that the interpreter imports from another folder, and from which; `probed` says whether
    the training's Python was made to tell of itself. `written` is what was counted of the files that the job
    could write to, by name: by the sampler of samples.csv, by the warden of train.log and probe.jsonl, before
    the launch of change.patch. `checked_out` digests the tree that was run, `rewritten` are files of it that
    were written while it ran and have the same content again; `uncounted` are those that it imported from the
    tree and that are no part of it, with what they hold. None: not known.
    `set_aside` says why the run counts for nothing, whatever its evidence. `session` is the caller's, `claim`
    the one that the hypothesis was under. `replayed` says that a recording was played back, `settings` is the
    digest of the pinned settings that were in force. None: not known.
    """

    format: int = FORMAT_VERSION
    gpudebug: str | None = None
    name: str
    campaign: str | None
    role: str
    hypothesis: int | None = None
    command: str
    argv: tuple[str, ...]
    shell: bool = False
    cwd: str
    environment: tuple[str, ...] = ()
    commit: str | None = None
    change: str | None = None
    change_digest: str | None = None
    identity: dict[str, str] = {}
    interpreter: str | None = None
    packages: dict[str, str] = {}
    knobs: dict[str, str] | None = None
    imports: dict[str, str] | None = None
    probed: bool | None = None
    written: dict[str, Counted] | None = None
    checked_out: str | None = None
    rewritten: tuple[str, ...] | None = None
    uncounted: dict[str, str] | None = None
    set_aside: str | None = None
    session: str | None = None
    claim: str | None = None
    replayed: bool | None = None
    settings: str | None = None
    host: str | None = None
    cpu_quota: float | None = None
    devices: tuple[DeviceInfo, ...] = ()
    interval_s: float | None = None
    warmup_s: float | None = None
    patterns: dict[str, str] = {}
    start: str
    end: str | None = None
    duration_s: float | None = None
    outcome: Outcome | None = None
    exit_status: int | None = None
    signal: int | None = None
    reason: str | None = None
    failure: Failure | None = None
    leaked: int = 0


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
    """What one device did in the window. `reason` says why `gpu_util` is unknown."""

    index: int
    uuid: str
    name: str
    gpu_util: Spread | None = None
    standard_error: float | None = None
    mem_used_mb: float | None = None
    reason: str | None = None


class LossEvidence(Record):
    """The training loss. `points` counts the printed values, redraws of one value once.

    `curve` is at most 40 (step, mean loss), over equal spans of steps.
    """

    name: str | None = None
    trend: Trend = Trend.UNKNOWN
    points: int = 0
    first: float | None = None
    last: float | None = None
    advice: str | None = None
    curve: tuple[tuple[float, float], ...] = ()


class Conditions(Record):
    """What the samples of the window say of the machine, the worst of the run's devices; None: unknown.

    `foreign_procs` is the largest count of other processes computing on the device, `foreign_share` the
    share of readings with any. `foreign_cpu` is the mean of that column, percent of the run's cores;
    `sm_clock_mhz` the mean clock; `throttle` the share of readings by reason. `read_mb_s` is what the run
    read from disk: what the page cache holds is not among it. `cpu_cores` is the CPU time a second of its
    processes, `cores` how many cores they may use.
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


class Evidence(Record):
    """evidence.json: every fact of one run that a verdict may use.

    `utilisation` is the mean over the run's devices in percent; `standard_error` that of the mean
    within this run, widened for autocorrelation. `spark` is at most 40 means in time order.
    `progress_per_s` counts what the log counts, `step_unit`: steps of the optimiser, timesteps of an
    environment, samples or epochs; `steps`, of the `total_steps` that it plans, and `steps_per_s` are
    the optimiser's. `steps_by` says what `steps_per_s` comes from: the `arrival` of the log's lines, else the
    `probe`, else as `printed`; `samples_by` what `samples_per_s` does: the `probe`, `counted` by the log, the
    step rate times the `batch` that was printed or that the command's `flags` say, or `printed`. Times of
    steps are the `probe`'s, else as `printed`, as `step_time_by` says; `logged` are the means of the user's
    own patterns, `batch_size` is as printed, else as the training process saw it, `batch_flags` are the
    command's flags that set it. `printed` is the configuration that the program printed before it trained,
    dotted names, `loaded` what its processes imported, None if unknown. `probe` is what the training
    process reported, None with `probe_reason` if it reported nothing, `sections` what it timed itself,
    `stacks` where its thread was, `trace` what `analyze` says of the PyTorch profiler's trace of a profiled
    run.
    """

    format: int = FORMAT_VERSION
    run: str
    role: str
    outcome: Outcome
    exit_status: int | None = None
    signal: int | None = None
    failure: Failure | None = None
    reason: str | None = None
    duration_s: float | None = None
    window: Window | None = None
    window_reason: str | None = None
    devices: tuple[DeviceEvidence, ...] = ()
    utilisation: float | None = None
    standard_error: float | None = None
    steps: int | None = None
    total_steps: int | None = None
    steps_per_s: float | None = None
    steps_by: str | None = None
    step_unit: str | None = None
    progress_per_s: float | None = None
    samples_per_s: float | None = None
    samples_by: str | None = None
    step_time_p50_s: float | None = None
    step_time_p95_s: float | None = None
    step_time_by: str | None = None
    latency_p50_s: float | None = None
    batch_size: float | None = None
    batch_flags: dict[str, str] = {}
    logged: dict[str, float] = {}
    data_s: float | None = None
    update_s: float | None = None
    framework: str | None = None
    loss: LossEvidence = LossEvidence()
    peak_rss_mb: float | None = None
    peak_device_mb: float | None = None
    missing: dict[str, str] = {}
    conditions: Conditions = Conditions()
    printed: dict[str, str] = {}
    loaded: LoadedFiles | None = None
    probe: ProbeEvidence | None = None
    probe_reason: str | None = None
    sections: SectionsEvidence | None = None
    stacks: StacksEvidence | None = None
    trace: dict[str, object] | None = None
    spark: tuple[float, ...] = ()


class Estimate(Record):
    """A figure with its 95 % confidence interval; bounds are None if one run says nothing of spread."""

    value: float
    low: float | None = None
    high: float | None = None


class Gate(Record):
    """One condition of a verdict. `value` and `threshold` are as printed.

    Of throughput, `source` says whose count it is: the `log`'s alone, which is the program's own word, the
    `probe`'s or `both`; None is not known. `unexplained` is what does not fit between them.
    """

    name: str
    value: str
    threshold: str
    result: Result
    note: str | None = None
    source: str | None = None
    unexplained: str | None = None


class UsedRun(Record):
    """A run that a verdict used, with the digest of the evidence that it was judged by.

    `part` is baseline or trial; a `fresh` run of the baseline was made beside the trial.
    """

    name: str
    part: str
    fresh: bool = False
    evidence_sha256: str


class Terms(Record):
    """What a trial is judged by, as gpudebug.yaml said it before the first run: its keys, its values.

    `criteria` and `protocol` are those sections, complete with defaults; durations in seconds.
    """

    metric: str = "gpu_util"
    direction: str = "higher"
    locked: tuple[str, ...] = ()
    criteria: dict[str, object]
    protocol: dict[str, object]


class Verdict(Record):
    """verdict.json: the judgement of one trial, with all that is needed to judge it again.

    `before` and `after` are utilisations in percent; `metric_before` and `metric_after` are the metric's, in
    its own unit, and `delta` its difference: percentage points, or a ratio above 1 if it is better.
    Throughput is in `throughput_unit` (`Evidence.step_unit`) a second. `remarks` are the notes that tell how
    the change was applied, `runs` the runs that were used; `change_digest` is that of the change which was
    tested, `claim` the one that it was tested under. `confirmed` is why a person takes counts that do not fit
    together for explained.
    """

    format: int = FORMAT_VERSION
    rule: str
    hypothesis: int
    change_digest: str | None = None
    claim: str | None = None
    status: Status
    why: str
    hollow: bool = False
    before: float | None
    after: float | None
    metric: str = "gpu_util"
    metric_before: float | None = None
    metric_after: float | None = None
    delta: Estimate | None
    throughput_before: float | None = None
    throughput_after: float | None = None
    throughput_unit: str | None = None
    throughput_ratio: Estimate | None = None
    training: str
    loss: Trend
    gates: tuple[Gate, ...]
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    confirmed: str | None = None
    terms: Terms | None = None
    runs: tuple[UsedRun, ...] = ()


class Manifest(Record):
    """manifest.json: sha256 of each file of a sealed run, written last."""

    format: int = FORMAT_VERSION
    run: str
    files: dict[str, str]
