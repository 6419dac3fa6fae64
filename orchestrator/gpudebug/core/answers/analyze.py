"""What `analyze` answers, by the kind of file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer, omitted
from gpudebug.core.answers.log import FailureLines, LogAnswer
from gpudebug.core.answers.sample import SampledDevice, SampledRate, SampledWindow
from gpudebug.core.answers.sections import SectionsAnswer
from gpudebug.core.answers.status import FigureAcross

Table = list[dict[str, Any]]
"""Rows of a trace, with the keys that docs/reference lists and --detailed writes."""


@dataclass(frozen=True, kw_only=True)
class RunOfFile:
    """One of several runs in a recording: `number` counts from 1, `start_s` and `end_s` from the file's
    beginning; `begins` says what told it from the run before it, null of the first."""

    number: int
    of: int
    start_s: float
    end_s: float
    begins: str | None


@dataclass(frozen=True, kw_only=True)
class RecordedGap:
    """Where rows are missing in a recording: `seconds` without any, `after_s` from its first row."""

    after_s: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RecordedDevice:
    """One device in a whole recording: plain means of its `readings`, warm-up and tail included.

    `gpu_util` and `mem_util` in %; `sm_active`, `tensor_active` and `dram_active` are shares of the time, 0
    to 1, as DCGM counts them; null is not in the file. `name` is its UUID, bus or name, null if it has none.
    """

    index: int
    name: str | None
    readings: int
    gpu_util: float | None
    sm_active: float | None
    tensor_active: float | None
    dram_active: float | None
    mem_util: float | None
    mem_used_mb: float | None
    mem_peak_mb: float | None
    mem_total_mb: float | None
    power_w: float | None
    temperature_c: float | None


@dataclass(frozen=True, kw_only=True)
class WholeRecording:
    """A recording of another monitor as a whole: its format `source` and the `version` that it gives.

    `gpu_util` is the mean of all rows in %, of whatever device. `period_s` is the usual time between two
    readings of a device, null if the rows have no time; it is `period_assumed` if only the monitor's own
    default tells it. `gaps` are the first of `gap_count` times without a row for more than three periods.
    `missing` names figures that are not in the file, `remarks` what is odd in them.
    """

    source: str
    version: str | None
    rows: int
    devices: tuple[RecordedDevice, ...]
    gpu_util: float | None
    start: str | None
    span_s: float | None
    period_s: float | None
    period_assumed: bool
    gaps: tuple[RecordedGap, ...]
    gap_count: int
    missing: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SamplesAnswer(Answer):
    """Samples: their steady window, and what each device did in it; `reason` says why there is no window.

    `awaited` is the device that the others wait for, as evidence.json has it, null if there is none or with
    `awaited_reason`.

    `throughput` to `failure` are as those of `sample`: of the run folder around the samples, or kept of
    `sample -o`; null if only the samples and their log are known. `source` names the monitor that recorded
    them, if it was not gpudebug, and `recorded` is what all its rows show; `run` is set if its file holds
    several. `notes` say what of the file was assumed, left out or not read, what the awaited device does, and
    why the mean utilisation misleads.
    """

    kind: str = "samples"
    file: str
    window: SampledWindow | None
    reason: str | None
    devices: tuple[SampledDevice, ...]
    rows: int
    unreadable_rows: int
    throughput: SampledRate
    probe: dict[str, Any] | None
    probe_reason: str | None
    sections: dict[str, Any] | None
    stacks: dict[str, Any] | None
    failure: FailureLines | None = None
    source: str | None = omitted()
    recorded: WholeRecording | None = omitted()
    run: RunOfFile | None = omitted()
    written: tuple[str, ...] | None = omitted()
    across: tuple[FigureAcross, ...] = ()
    joules_per_step: float | None = None
    awaited: dict[str, Any] | None = None
    awaited_reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceAnswer(Answer):
    """A trace: what the devices did, why they idled, and what ran. Keys with `_s` are seconds, `_us`
    microseconds, shares are 0 to 1; null is not known. `began` is its first moment in UTC, if it tells that.
    `reason` says why no utilisation is known, `source`
    what recorded it if not a profiler of PyTorch; `process` is the one of several in its file."""

    kind: str = "trace"
    file: str
    truncated: bool
    notes: list[str]
    events: int
    device_events: int
    span_s: float
    began: str | None
    rank: int | None
    world_size: int | None
    busy_share: float | None
    reason: str | None
    devices: Table
    gaps: dict[str, Any] | None
    kernels_per_step: float | None
    mean_kernel_us: float | None
    kernels: Table
    memcpy: Table
    syncs: Table
    nccl: dict[str, Any] | None
    operators: Table
    steps: dict[str, Any] | None
    host: dict[str, Any]
    source: str | None = omitted()
    process: int | None = omitted()
    written: tuple[str, ...] | None = omitted()


@dataclass(frozen=True, kw_only=True)
class ComparedRank:
    """One rank at the collectives of its job: seconds that it `waited_s` for others in them, how often it
    came `last`, and `cost_s`, how much later than the one before it, summed: what the others would save if it
    came with them. `exposed_s` is its communication that no computation hides."""

    rank: int
    file: str
    waited_s: float
    last: int
    cost_s: float
    exposed_s: float | None
    busy_share: float | None


@dataclass(frozen=True, kw_only=True)
class RanksTogether:
    """Traces of several ranks beside each other: `collectives` that were matched, `coverage` of those of the
    rank with most, 0 to 1, and the skew between first and last arrival. `late` is the rank that makes the
    others wait, null if none is named; `reason` says why nothing was compared."""

    ranks: tuple[ComparedRank, ...]
    collectives: int
    coverage: float | None
    skew_p50_s: float | None
    skew_max_s: float | None
    late: int | None
    reason: str | None


OneFile = SamplesAnswer | LogAnswer | SectionsAnswer | TraceAnswer


@dataclass(frozen=True, kw_only=True)
class FilesAnswer(Answer):
    """Several files; `merged` is what all section reports say together, `ranks` what traces of several ranks
    do, `recorded` all runs of one recording."""

    files: tuple[OneFile, ...]
    recorded: WholeRecording | None = omitted()
    merged: SectionsAnswer | None = omitted()
    ranks: RanksTogether | None = omitted()
    written: tuple[str, ...] | None = omitted()


AnalyzeAnswer = OneFile | FilesAnswer
