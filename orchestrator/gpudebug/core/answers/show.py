"""What `show H` answers, and parts that others have too: the picture of a verdict, the probe's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.sample import RunDevices
from gpudebug.core.answers.status import GateRow, HypothesisRow


@dataclass(frozen=True, kw_only=True)
class LevelPoint:
    """One run in its `place`: its `value`, and the level of the unchanged program after it with its 95 %
    band.

    `part` is baseline or trial; `failure` and `success` are where the thresholds are above this level.
    """

    run: str
    part: str
    place: int
    value: float
    level: float
    low: float
    high: float
    failure: float
    success: float


@dataclass(frozen=True, kw_only=True)
class ChangedLevel:
    """What the change does to the level: `before` is that during the trial, `after` that with the effect, and
    `low` to `high` its 95 % interval.

    `text` is the effect as its entry has it; `failure` and `success` are where the thresholds are above
    `before`.
    """

    text: str
    before: float
    after: float
    low: float
    high: float
    failure: float
    success: float


@dataclass(frozen=True, kw_only=True)
class VerdictCourse:
    """The runs of a verdict, oldest first, in the `unit` of its metric; if `lower`, less is better.

    `failure` and `success` are the criteria: percentage points, or ratios. `effect` is None if it is unknown.
    """

    metric: str
    unit: str
    lower: bool
    failure: float
    success: float
    points: Sequence[LevelPoint]
    effect: ChangedLevel | None


@dataclass(frozen=True, kw_only=True)
class CopyFigures:
    """Copies of a mean run in its steady window; MB of 2**20 bytes, `pinned_share` is 0 to 1."""

    count: float | None
    mb: float | None
    seconds: float | None
    pinned_share: float | None


@dataclass(frozen=True, kw_only=True)
class SiteFigures:
    """A place of the training's code that reads from the device; counts and seconds are of a mean run."""

    site: str
    kind: str
    device: str
    count: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ProbeFigures:
    """What `core.records.ProbeEvidence` says of a run, of one run or of several as of one. None is not known.

    Means of the runs, the largest of retries and peaks, and the sites that took the most time; `rank`,
    `world_size` and `facts` are the last run's. `facts` is as the training process wrote it.
    """

    steps: float | None
    span_steps: float | None
    steps_per_s: float | None
    samples_per_s: float | None
    step_time_p50_s: float | None
    step_time_p95_s: float | None
    data_wait_share: float | None
    eval_data_share: float | None
    background_data_share: float | None
    loader_start_share: float | None
    forward_share: float | None
    backward_share: float | None
    optimizer_share: float | None
    backwards_per_step: float | None
    inputs_per_step: float | None
    blocking_reads_per_step: float | None
    blocking_read_share: float | None
    syncs_per_step: float | None
    device_time_share: float | None
    gc_share: float | None
    cpu_cores: float | None
    alloc_retries: float | None
    peak_host_mb: float | None
    peak_device_mb: float | None
    h2d: CopyFigures | None
    d2h: CopyFigures | None
    rank: int | None
    world_size: int | None
    facts: Mapping[str, Any]
    sites: tuple[SiteFigures, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProbeSide:
    """One side: `part` is baseline, trial or a baseline's role. `reason` says why there are no figures."""

    part: str
    runs: tuple[str, ...]
    figures: ProbeFigures | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class SectionMean:
    """A section of one side's runs: the mean seconds a call, and its share of the profiled time, 0 to 1."""

    mean_s: float
    share: float


@dataclass(frozen=True, kw_only=True)
class SectionRow:
    """A section of two sides; a side is None if one of its runs lacks it. `ratio` is B's speed over A's."""

    name: str
    a: SectionMean | None
    b: SectionMean | None
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class UnreadRun:
    """A run whose evidence cannot be read."""

    run: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ShowAnswer(HypothesisRow, Answer):
    """What `show` answers: `status`'s row of a hypothesis, and what else is known of it.

    `line` is that of the progress file. `figures` are the texts of the Result there, `evidence` is the
    evidence.json of each run that has one, as it was read, and `profile` the newest torch profile of the
    workload as its run recorded it. `probe` and `sections` are of baseline and trial. `devices` are those of
    runs that have several. `course` is the picture behind the verdict, None if there is none.
    """

    description: str
    test_method: str
    line: int
    notes: Sequence[str]
    figures: Mapping[str, str]
    gates: Sequence[GateRow]
    evidence: Sequence[Mapping[str, Any]]
    skipped: Sequence[UnreadRun]
    probe: Sequence[ProbeSide]
    sections: Sequence[SectionRow]
    profile: Mapping[str, Any] | None
    files: Sequence[str]
    devices: Sequence[RunDevices] = ()
    course: VerdictCourse | None = None
