"""What `status` answers: where a campaign is, and what `next` would do.

Times are ISO 8601 in UTC, ages and durations seconds, utilisation percent; None is unknown or does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer, PhaseFigures, omitted


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """One gate: `value`, None if it is unknown, and `threshold` are as printed.

    `result` is pass, fail, unknown or skipped. `source` is whose count a throughput is (`log`, `probe`,
    `both`), `unexplained` what does not fit between them; both are None of other gates.
    """

    name: str
    value: str | None
    threshold: str
    result: str
    note: str | None = None
    source: str | None = None
    unexplained: str | None = None


@dataclass(frozen=True, kw_only=True)
class WorkFigure:
    """`per_s` of `unit` a second, the mean of the runs; `source` is what it is read from. `per_s` is null if
    a run lacks it."""

    unit: str
    per_s: float | None
    source: str


@dataclass(frozen=True, kw_only=True)
class DeviceValue:
    """A figure of one device, by its index and UUID; `node` is the one that it is on, of several."""

    index: int
    uuid: str
    value: float
    node: str | None = None


@dataclass(frozen=True, kw_only=True)
class FigureAcross:
    """A figure over the devices of a run, in its unit: % of `gpu_util`, `mem_util` and `throttled`, W, MHz,
    MB, degrees Celsius.

    `apart` are the devices that differ from the others by the rule of outliers, the farthest first; none of
    fewer than three. `unknown` counts the devices that lack it. `unused` are devices that no run used: they
    are left out of the rest.
    """

    figure: str
    least: DeviceValue
    median: float
    most: DeviceValue
    apart: tuple[DeviceValue, ...] = ()
    unknown: int = 0
    unused: tuple[DeviceValue, ...] = ()


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


@dataclass(frozen=True, kw_only=True)
class GoalRuns:
    """The fewest runs that confirm an effect: of the trial, and of the baseline beside it.

    `device_time_s` is None if no run recorded its duration.
    """

    total: int
    trial: int
    baseline: int
    device_time_s: float | None


@dataclass(frozen=True, kw_only=True)
class DetectableFigure:
    """One figure of a trial: the campaign's metric, or throughput. `unit` is `pp` or `x`.

    `sd` is the spread between runs as the verdict rule takes it, `own_sd` that of the `runs` alone; of a
    ratio, of its logarithm. `told` is the smallest effect that a trial detects, `passed` the smallest that
    passes the delta gate, each in four trials of five. `goal_runs` are the runs that `goal` takes; None if no
    trial may have so many. Any other None is not known.
    """

    figure: str
    unit: str
    sd: float | None
    own_sd: float | None
    runs: int
    told: float | None
    passed: float | None
    goal: float
    goal_runs: GoalRuns | None


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Which effects a trial can detect, and the runs that an effect takes.

    `fresh_runs` are the baseline's beside trials, `left` is how many runs the device time pays for (None: not
    known), `limited` says that a trial may want more.
    """

    baseline_runs: int
    fresh_runs: int
    aa_runs: int
    max_runs: int
    left: int | None
    limited: bool
    figures: tuple[DetectableFigure, ...]


@dataclass(frozen=True, kw_only=True)
class UsedDevice:
    """The `device` setting, and the devices of the newest run that has any, each as its run.json has it."""

    setting: str
    devices: Sequence[Mapping[str, Any]]
    replayed: bool


@dataclass(frozen=True, kw_only=True)
class RunSpark:
    """The utilisation of one run as a small picture; `spark` is None if its evidence cannot be read."""

    run: str
    spark: Sequence[float] | None


@dataclass(frozen=True, kw_only=True)
class BaselineRow:
    """One baseline. `why` says why it is not valid; the texts are those of the progress file.

    `learning` is what learning is judged by, None if nothing is or can be. `cost_s` is what its runs held a
    device, `ended` when the last of them did. `across` compares its devices if there are several, and
    `device_notes` are what a reader of their mean utilisation has to know. `phases` are those of its runs.
    """

    valid: bool
    why: str | None
    verified: bool
    replayed: bool | None
    gpu_util: float | None
    gpu_util_text: str | None
    steps_per_s: float | None
    metric_text: str | None
    throughput_text: str | None
    work: WorkFigure | None = None
    work_text: str | None = None
    loss: str | None
    learning: str | None = None
    advice: Sequence[str]
    runs: Sequence[str]
    cost_s: float | None
    ended: str | None
    age_s: int | None
    sparks: Sequence[RunSpark]
    across: Sequence[FigureAcross] = ()
    device_notes: Sequence[str] = ()
    phases: Sequence[PhaseFigures] = ()


@dataclass(frozen=True, kw_only=True)
class HypothesisClaim:
    """Who holds a hypothesis: a session, or a person if it is None."""

    session: str | None
    since: str


@dataclass(frozen=True, kw_only=True)
class HypothesisRow:
    """One hypothesis. `verified` says if runs support its verdict; None without a verdict.

    `cost_s` are the seconds that its runs held a device, those of the baseline beside it among them; `ended`
    is when the last of them ended. `delta_pp` is the verdict's difference of utilisation, `improvement` that
    of another metric. `claimed` is the improvement that the progress file names. `sparks` are of its own
    runs, oldest first, None if they were not read. `problem` is why it cannot be tested.
    """

    number: int
    title: str
    status: str
    verified: bool | None
    weaker_terms: Sequence[str]
    replayed: bool | None
    doubts: Sequence[str]
    intervention: str | None
    cause: str | None
    claim: HypothesisClaim | None
    accepted: int | None
    accepted_by_hand: bool
    why: str | None
    delta_pp: float | None
    delta_ci: Sequence[float | None] | None
    metric: str | None
    improvement: float | None
    improvement_ci: Sequence[float | None] | None
    throughput_ratio: float | None
    throughput_source: str | None
    loss: str | None
    cost_s: float | None
    ended: str | None
    age_s: int | None
    claimed: str | None
    runs: Sequence[str]
    sparks: Sequence[RunSpark] | None
    problem: str | None


@dataclass(frozen=True, kw_only=True)
class UnlistedVerdict:
    """A sealed verdict that no entry of the progress file lists."""

    run: str
    hypothesis: int
    status: str


@dataclass(frozen=True, kw_only=True)
class SweepValue:
    """One value of a sweep, and what its hypothesis came to; `measured` is another metric than utilisation,
    before and after, as text."""

    value: str
    hypothesis: int
    status: str
    verified: bool | None
    delta_pp: float | None
    delta_ci: Sequence[float | None] | None
    improvement: float | None
    improvement_ci: Sequence[float | None] | None
    throughput_ratio: float | None
    measured: str | None = None


@dataclass(frozen=True, kw_only=True)
class FlagSweep:
    """Hypotheses that set one flag or variable to different values; `standing` is what gpudebug.yaml sets."""

    parameter: str
    standing: str | None
    rows: Sequence[SweepValue]


@dataclass(frozen=True, kw_only=True)
class ExpectedFigure:
    """What gpudebug.yaml expects of the workload on `device`, of a `phase`, beside what was measured."""

    figure: str
    device: str
    range: Sequence[float]
    measured: float | None
    standing: str
    note: str | None
    phase: str | None = None


@dataclass(frozen=True, kw_only=True)
class NextAction:
    """What `next` would do; while a command runs something, what that does."""

    action: str
    hypothesis: int | None
    role: str | None
    why: str


@dataclass(frozen=True, kw_only=True)
class OrderSource:
    """When the order of what waits was recorded, by which command, and from the baseline of which runs."""

    when: str
    by: str
    baseline: Sequence[str]
    age_s: int | None


@dataclass(frozen=True, kw_only=True)
class RecordedAt:
    """When the summary that the answer is read from was recorded."""

    when: str
    age_s: int | None


@dataclass(frozen=True, kw_only=True)
class BudgetLeft:
    """The hypotheses and the seconds of device time that the campaign may take."""

    hypotheses: int
    hypotheses_used: int
    hypotheses_left: int
    device_time_s: float
    device_time_used_s: float
    device_time_left_s: float


@dataclass(frozen=True, kw_only=True)
class PinnedSettings:
    """Whether the settings are pinned, and a line for each that gpudebug.yaml has otherwise."""

    pinned: bool
    differences: Sequence[str]
    problem: str | None
    replayed: bool


@dataclass(frozen=True, kw_only=True)
class CampaignFiles:
    """The progress file and the folder of the runs."""

    progress: str
    runs: str


@dataclass(frozen=True, kw_only=True)
class AcceptedWorth:
    """What the accepted changes are worth together; `why` says why `text` and `throughput` are null.

    `paired` says that both sides were run in turn, `agrees` whether the only accepted change gained as much
    in its trial; null if that is no question. `notes` are what else the figure holds.
    """

    text: str | None
    throughput: str | None
    why: str | None
    paired: bool
    agrees: bool | None
    notes: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class StatusAnswer(Answer):
    """What `status` answers. `shown` are the numbers of the hypotheses that a text lists.

    `baselines` are by role. `progress` is that of a run under way, `resolution` None without a valid
    baseline, `order` None if it decides nothing, `recorded` None if the evidence was read. For a text,
    `hypotheses` may hold only those that it lists; `rest` then counts the others by status.
    `together` is left out while nothing is accepted, `allocation`, a line on the cluster's job, without one.
    """

    campaign: str
    goal: str
    device: UsedDevice
    running: bool
    progress: RunProgress | None
    metric: str
    target: float | None
    target_text: str
    baselines: Mapping[str, BaselineRow | None]
    hypotheses: Sequence[HypothesisRow]
    shown: Sequence[int]
    unlisted: Sequence[UnlistedVerdict]
    sweeps: Sequence[FlagSweep]
    resolution: Resolution | None
    expected: Sequence[ExpectedFigure]
    next: NextAction
    order: OrderSource | None
    recorded: RecordedAt | None
    budget: BudgetLeft
    settings: PinnedSettings
    files: CampaignFiles
    rest: Mapping[str, int] | None = omitted()
    together: AcceptedWorth | None = omitted()
    allocation: str | None = omitted()
