"""What `sample` answers: one run, its steady window, and what each device and each rank did in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.log import FailureLines, LatencyFigures
from gpudebug.core.answers.status import FigureAcross


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """One rank: shares (0 to 1) of its time in which it waits for other ranks and for batches, `own_s` what a
    step takes it without the waits for others, `cores` what it may use, `gpu_index` the number of its device
    among those that were sampled. Null is unknown. Of a rank that does not train on a CPU `wait_share` is its
    host's alone: what its device waits is not in it."""

    rank: int | None
    node: str | None
    device: str | None
    gpu_index: int | None
    wait_share: float | None
    data_share: float | None
    own_s: float | None
    cores: float | None
    loader_workers: int | None


@dataclass(frozen=True, kw_only=True)
class StragglerRank:
    """The rank that arrives last, so that the others wait `gap` of the time (0 to 1) longer than it.

    `cause` is `checkpoint`, `evaluation`, `logging`, `loader`, `uneven-batches`, `fewer-cores`,
    `slower-device`, `own-work` (code that takes the others less) or `unknown`. `certain` is false where ranks
    meet in each layer (sharded weights), and where one does not train on a CPU: hosts do not show what
    devices wait. `line` is the line of the program to read, null if none is known.
    """

    rank: int
    node: str | None
    cause: str
    title: str
    gap: float
    certain: bool
    for_: tuple[str, ...]
    line: str | None


@dataclass(frozen=True, kw_only=True)
class LateRank:
    """The rank that began last: the others had waited `seconds` longer to begin, once a run."""

    rank: int
    node: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RanksFinding:
    """The ranks of a training. `reported` of its `world_size` ranks reported.

    `straggler` is null if no rank holds the others up, or if that is not known: `abstains` says why not.
    `notes` name what is odd: ranks that died or are missing, share a device, differ in PyTorch or in clocks.
    """

    world_size: int
    reported: int
    rows: tuple[RankRow, ...]
    straggler: StragglerRank | None
    late: LateRank | None
    abstains: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SampledWindow:
    """The steady window, in seconds from the start of the run, and the samples in it."""

    start_s: float
    end_s: float
    samples: int


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Memory in use on a device, of all its processes, in MB: the mean in the window and the run's peak."""

    mean_mb: float
    peak_mb: float


@dataclass(frozen=True, kw_only=True)
class FigureSpread:
    """A figure in its own unit: time-weighted mean and percentiles."""

    mean: float
    p5: float
    p50: float
    p95: float


@dataclass(frozen=True, kw_only=True)
class SampledDevice:
    """One device in the window; `reason` says why its utilisation is null. What is unknown is null.

    `mem_util` is the share of time in which its memory was read or written, in %; W, MHz, MB and degrees
    Celsius as the names say. `throttle` are shares of the time (0 to 1) by reason, `throttled` that of any
    reason for which it ran slower than its load needs. `energy_j` is of the window, by the driver's `counter`
    or by `power` over time.

    `working` is the share of the window, 0 to 1, in which it drew the power of its working phases;
    `working_reason` says why that is null. `link` is what it hangs on: bus, lanes and NVLinks. `node` is the
    one that it is on, of a run on several nodes. `cores` are those of which the CPU stand-in is 100%.
    """

    index: int
    uuid: str
    name: str
    gpu_util: FigureSpread | None
    reason: str | None
    memory: DeviceMemory | None = None
    mem_total_mb: float | None = None
    mem_util: FigureSpread | None = None
    power_w: FigureSpread | None = None
    sm_clock_mhz: FigureSpread | None = None
    mem_clock_mhz: FigureSpread | None = None
    temperature_c: FigureSpread | None = None
    throttle: dict[str, float] | None = None
    throttled: float | None = None
    energy_j: float | None = None
    energy_by: str | None = None
    power_limit_w: float | None = None
    working: float | None = None
    working_reason: str | None = None
    link: str | None = None
    node: str | None = None
    cores: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunDevices:
    """The devices of one of several runs, and how they compare."""

    run: str
    devices: tuple[SampledDevice, ...]
    across: tuple[FigureAcross, ...]


@dataclass(frozen=True, kw_only=True)
class SampledRate:
    """Steps a second in the window; null is not known."""

    steps_per_s: float | None


@dataclass(frozen=True, kw_only=True)
class SampleAnswer(Answer):
    """`sample`: how the run ended, and what it shows; `reason` says why there is no window.

    `loss`, `probe`, `sections`, `stacks` and `trace` are as evidence.json has them; a trace has the `path` of
    its file. `missing` says by name why something was not measured. `replayed` is true of a recording.
    `across` compares the devices if there are several; `joules_per_step` is the energy of all.
    """

    outcome: str
    why: str | None
    exit_status: int
    window: SampledWindow | None
    reason: str | None
    devices: tuple[SampledDevice, ...]
    throughput: SampledRate
    latency: LatencyFigures | None
    loss: dict[str, Any]
    failure: FailureLines | None
    probe: dict[str, Any] | None
    probe_reason: str | None
    sections: dict[str, Any] | None
    stacks: dict[str, Any] | None
    trace: dict[str, Any] | None
    missing: dict[str, str]
    notes: tuple[str, ...]
    csv: str
    log: str
    replayed: bool
    across: tuple[FigureAcross, ...] = ()
    joules_per_step: float | None = None
