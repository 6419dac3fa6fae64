"""The records that are on disk, frozen; the words that they share are in `words`.

Units, unless a name says otherwise: seconds, percent of utilisation, `_mb` is 2**20 bytes.
`None` is *unknown*; it is never written as 0.
"""

from __future__ import annotations

from gpudebug.core.records.inside import (
    AttachedEvidence,
    LoadedFiles,
    ProbeEvidence,
    ProgramEvidence,
    RankEvidence,
    RankLine,
    SectionFigures,
    SectionsEvidence,
    Stacks,
    StacksEvidence,
)
from gpudebug.core.records.parts import (
    AwaitedDevice,
    Conditions,
    Counted,
    DeviceEvidence,
    DeviceInfo,
    Failure,
    LatencyEvidence,
    LearningSeries,
    LearningUnit,
    LossEvidence,
    PhaseEvidence,
    PlannedEnd,
    Record,
    RunNode,
    ServerRun,
    Spread,
    UsedRun,
    Window,
    WorkRate,
    WorkUnit,
)
from gpudebug.core.words import Outcome, Result, Status, Trend

FORMAT_VERSION = 1


class RunRecord(Record):
    """run.json: what was launched, where and in what surroundings; completed when the run ends.

    `identity` holds what a baseline is valid for, a digest or name each: `command` (of the unmodified
    workload, its folder and variables), `tree`, `interpreter`, `device`. `change` is the intervention.
    `warmup_s` (None: found from the data) and `patterns` are how samples and log were read, `gpudebug` is the
    version that read them and `evidence_rule` the rule that it had; None: an older one. `knobs` are the
    variables that steer libraries, `variables` others that gpudebug.yaml or a hypothesis sets, as the program
    was given them (null: not set), `imports` the packages of the checkout that the interpreter imports from
    another folder, and from which; `probed` says whether the training's Python was made to tell of itself.
    `written` is what was counted of the files that the job could write to, by name: by the sampler of
    samples.csv, by the warden of train.log and probe.jsonl, before the launch of change.patch. `checked_out`
    digests the tree that was run, `rewritten` are files of it that were written while it ran and have the
    same content again; `uncounted` are those that it imported from the tree and that are no part of it, with
    what they hold. None: not known.
    `overwritten` are files of before, of any kind, that native code of the run or another program rewrote.
    `set_aside` says why the run counts for nothing, whatever its evidence. `session` is the caller's, `claim`
    the one that the hypothesis was under. `replayed` says that a recording was played back, `settings` is the
    digest of the pinned settings that were in force. `synonyms` are the command's options that have several
    names. None: not known. `planned` says where gpudebug ended the run, None of a run that ended otherwise.
    `least_window_s` is how short its window may be, to be looked at alone; None: 5 s.
    `own_limit_mb` is as `Failure` has it. `attached` is the process that was looked at while it ran already:
    then `argv`, `cwd` and `knobs` are its, and gpudebug launched nothing of it. `paired` is one for the runs
    that were made in turn, of the baseline with the accepted changes and of the workload without them.
    `shared` are other campaigns or commands of gpudebug that measured on its cores when it began or ended,
    None where runs of other devices are concerned. `redundant` is the cause that its hypothesis names, if it
    is about input which the model never reads. `node` is the node of a cluster's job that it was launched on,
    None outside of one; `boot` is the kernel's id of the host's boot. `measured_as` is the run of
    a trial that a run of the baseline is a copy of. `phase` is the one whose steady part is the run's window,
    None for that of the whole run.
    """

    format: int = FORMAT_VERSION
    gpudebug: str | None = None
    evidence_rule: str | None = None
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
    variables: dict[str, str | None] | None = None
    imports: dict[str, str] | None = None
    probed: bool | None = None
    written: dict[str, Counted] | None = None
    checked_out: str | None = None
    rewritten: tuple[str, ...] | None = None
    overwritten: tuple[str, ...] | None = None
    uncounted: dict[str, str] | None = None
    set_aside: str | None = None
    session: str | None = None
    claim: str | None = None
    replayed: bool | None = None
    settings: str | None = None
    synonyms: tuple[tuple[str, ...], ...] | None = None
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
    own_limit_mb: float | None = None
    leaked: int = 0
    server: ServerRun | None = None
    planned: PlannedEnd | None = None
    least_window_s: float | None = None
    attached: int | None = None
    paired: str | None = None
    measured_as: str | None = None
    shared: tuple[str, ...] | None = None
    redundant: str | None = None
    node: RunNode | None = None
    boot: str | None = None
    phase: str | None = None


class Evidence(Record):
    """evidence.json: every fact of one run that a verdict may use.

    `utilisation` is the mean over the run's devices in percent; `standard_error` that of the mean
    within this run, widened for autocorrelation. `spark` is at most 40 means in time order.
    `progress_per_s` counts what the log counts, `step_unit`: steps of the optimiser, timesteps of an
    environment, samples or epochs; `steps`, of the `total_steps` that it plans, and `steps_per_s` are the
    optimiser's, `first_step_s` is when the first one had ended. `steps_by` says what `steps_per_s` comes
    from: the `arrival` of the log's lines, else the `probe`, else as `printed`; `samples_by` what
    `samples_per_s` does: the `probe`, `counted` by the log, the step rate times the `batch` that was printed
    or that the command's `flags` say, or `printed`. Times of steps are the `probe`'s, else as `printed`, as
    `step_time_by` says; `logged` are the means of the user's own patterns, `batch_size` is as printed, else
    as the training process saw it, `batch_flags` are the
    command's flags that set it. `latency` is of all latencies, whatever the window; None in evidence before
    0.2.0, whose `latency_p50_s` is of the window's. `printed` is the configuration that the program printed
    before it trained, dotted names, of what it gave several values the last word; `restated` are such values
    in order, and what is in it alone is contradictory. `occasions` counts evaluations, checkpoints and log
    lines in the log. `loaded` is what its processes imported, None if unknown. `probe` is what the training
    process reported, None with `probe_reason` if it reported nothing, `sections` what it timed itself,
    `stacks` where its thread was, `trace` what `analyze` says of the PyTorch profiler's trace of a profiled
    run. `work` are the candidates for the campaign's unit of work, the best first, and `work_notes` what is
    wrong with others; `step_flags` are the command's flags, beside the batch's, that set what a step takes.
    `learning` are the figures of learning beside the log's loss, and `learning_notes` what is wrong with
    files that were read for them. `attached` is what was seen of a job that ran already, None of any other
    run. `resumed` is the line by which the program reports that it continues an earlier run, `cached` the one
    by which it reports that it found a cache, `first_count` and
    `last_count` are the ends of what the log counts, in `step_unit`. `joules_per_step` is the energy of all
    devices, over the optimiser's steps; None unless every device has one. `working` is the mean of the
    devices' working shares, `awaited` the device that the others wait for, None also if there is none;
    `working_reason` and `awaited_reason` say why they are unknown. `ranks` are the
    processes of a training that has several, `program` is the one of all processes below the command.
    `phases` are those that log or probe name, in their order, and `phases_reason` is why one that was asked
    for is missing, or why there are none.
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
    first_step_s: float | None = None
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
    latency_p95_s: float | None = None
    latency_p99_s: float | None = None
    latency: LatencyEvidence | None = None
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
    restated: dict[str, tuple[str, ...]] = {}
    occasions: dict[str, int] | None = None
    resumed: str | None = None
    cached: str | None = None
    first_count: int | None = None
    last_count: int | None = None
    loaded: LoadedFiles | None = None
    probe: ProbeEvidence | None = None
    probe_reason: str | None = None
    sections: SectionsEvidence | None = None
    stacks: StacksEvidence | None = None
    trace: dict[str, object] | None = None
    spark: tuple[float, ...] = ()
    work: tuple[WorkRate, ...] = ()
    work_notes: tuple[str, ...] = ()
    step_flags: dict[str, str] = {}
    learning: tuple[LearningSeries, ...] = ()
    learning_notes: tuple[str, ...] = ()
    attached: AttachedEvidence | None = None
    joules_per_step: float | None = None
    working: float | None = None
    working_reason: str | None = None
    awaited: AwaitedDevice | None = None
    awaited_reason: str | None = None
    ranks: tuple[RankEvidence, ...] = ()
    program: ProgramEvidence | None = None
    phases: tuple[PhaseEvidence, ...] = ()
    phases_reason: str | None = None


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


class Terms(Record):
    """What a trial is judged by, as gpudebug.yaml said it before the first run: its keys, its values.

    `criteria` and `protocol` are those sections, complete with defaults; durations in seconds. `work` is the
    campaign's unit of work, None where its baseline has none: steps are then compared as the logs count them.
    `learning` is what learning is judged by, None for the loss that the log prints.
    """

    metric: str = "gpu_util"
    direction: str = "higher"
    locked: tuple[str, ...] = ()
    criteria: dict[str, object]
    protocol: dict[str, object]
    work: WorkUnit | None = None
    learning: LearningUnit | None = None


class CoursePoint(Record):
    """A run of a verdict in its `place`: the metric's `value`, and the level of the unchanged program after
    it with its 95 % band, all in the metric's unit."""

    run: str
    part: str
    place: int
    value: float
    level: float
    low: float
    high: float


class Verdict(Record):
    """verdict.json: the judgement of one trial, with all that is needed to judge it again.

    `before` and `after` are utilisations in percent; `metric_before` and `metric_after` are the metric's, in
    its own unit, and `delta` its difference: percentage points, or a ratio above 1 if it is better.
    Throughput is in `throughput_unit` (`Evidence.step_unit`) a second. `remarks` are the notes that tell how
    the change was applied, `runs` the runs that were used; `change_digest` is that of the change which was
    tested, `claim` the one that it was tested under. `confirmed` is why a person takes counts that do not fit
    together for explained. `before` and the like are the level while the trial ran: with the difference they
    make `after`. `more` is how often the trial was continued after it had ended open, `course` its runs in
    their order with the level.
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
    more: int = 0
    course: tuple[CoursePoint, ...] = ()
    terms: Terms | None = None
    runs: tuple[UsedRun, ...] = ()


class Manifest(Record):
    """manifest.json: sha256 of each file of a sealed run, written last."""

    format: int = FORMAT_VERSION
    run: str
    files: dict[str, str]
