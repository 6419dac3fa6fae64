"""What `diagnose` and `why` answer: causes with what speaks for them, and the result of a layer test."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudebug.core.answers.answer import Answer, PhaseFigures
from gpudebug.core.answers.log import FailureLines
from gpudebug.core.answers.sample import RanksFinding, SampledDevice, SampledRate, SampledWindow
from gpudebug.core.answers.status import FigureAcross
from gpudebug.core.words import SignalValue


@dataclass(frozen=True, kw_only=True)
class CauseTest:
    """What tests a cause: a hypothesis that waits, by `number`, or a new one.

    `change` is in `propose`'s syntax, `instructions` are for its writer, `cost_s` the seconds of the device
    that a trial takes. `refused` says why there is no test, `command` what comes next; null does not apply.
    """

    number: int | None = None
    title: str
    change: str | None = None
    instructions: str | None = None
    refused: str | None = None
    cost_s: float | None = None
    command: str | None = None


MOST_EXPOSED = 0.95
"""Of the time: beyond it nothing bounds what a fix brings, since no step is without work."""


def gained(ratio: float) -> str:
    """Return a ceiling of throughput: `2.75x`, or `over 20x` where nothing bounds it."""
    most = 1 / (1 - MOST_EXPOSED)
    return f"{ratio:.2f}x" if ratio < 0.999 * most else f"over {most:.0f}x"


@dataclass(frozen=True, kw_only=True)
class LikelyCause:
    """A cause in short: `probability` 0 to 1, `ceiling_pp` what utilisation can gain, in percentage points
    (null if its share of the time is unknown), and the facts for and against it. `exposed`,
    `ceiling_ratio` and `line` are as those of `DiagnosedCause`."""

    id: str
    probability: float
    ceiling_pp: float | None
    for_: tuple[str, ...]
    against: tuple[str, ...]
    exposed: float | None = None
    ceiling_ratio: float | None = None
    line: str | None = None


@dataclass(frozen=True, kw_only=True)
class DiagnosedCause:
    """A cause in full.

    `exposed` is the share of the time (0 to 1) that only it explains, `expected_util` utilisation after its
    fix, `ceiling_ratio` and `ceiling_steps_per_s` throughput at best, `line` the line of the program to read;
    null is unknown.
    """

    id: str
    title: str
    probability: float
    exposed: float | None
    ceiling_pp: float | None
    expected_util: float | None
    ceiling_ratio: float | None
    ceiling_steps_per_s: float | None
    for_: tuple[str, ...]
    against: tuple[str, ...]
    hypothesis: CauseTest
    line: str | None = None


@dataclass(frozen=True, kw_only=True)
class KnownCause:
    """A cause that needs no run to be known."""

    id: str
    title: str
    for_: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """Evidence that would show more: what, why it is missing, and what records it."""

    what: str
    why: str
    next: str


@dataclass(frozen=True)
class LayerResult:
    """The result of one layer test, compared with the valid baseline.

    `ratio` is step rate over the baseline's, samples per second of double_batch; `step_ratio` is always that
    of step rates. None is not known, and `notes` say why. `changed` is what was done to the command, `means`
    one sentence, `run` the newest of `runs`.
    """

    layer: str
    run: str
    runs: tuple[str, ...]
    ratio: float | None
    step_ratio: float | None
    changed: str
    means: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OtherProgram:
    """The words of both commands that are no options."""

    workload: str
    reference: str


@dataclass(frozen=True)
class OtherFlag:
    """An option that only one of the commands has (null: not set), or that has another value there; true for
    a bare one."""

    name: str
    workload: str | bool | None
    reference: str | bool | None


@dataclass(frozen=True)
class OtherFigure:
    """A signal that both sides know, with another value."""

    name: str
    unit: str
    workload: SignalValue
    reference: SignalValue


@dataclass(frozen=True, kw_only=True)
class FromReference:
    """What the workload does otherwise than its reference; `lines` are all of it, one line each.

    `program` is null if the commands start the same one.
    """

    program: OtherProgram | None
    flags: tuple[OtherFlag, ...]
    figures: tuple[OtherFigure, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DiagnoseAnswer(Answer):
    """`diagnose`: the causes by probability, those known without a run, and what was not measured.

    `campaign` is null for a single run. `gpu_util` is in %, null if not measured; `stand_in` says that the
    CPU stands in for a device. `abstains` says why no cause is named. `facts` are the signals by their names
    in `gpudebug catalogue --signals`. `layers` are layer tests by the layer; `difference` is null without a
    reference. `unexplained` is what 0.2.0 named, null from 0.3.0 on. `failure` is why a single run
    failed. `ranks` is null of a training with one process. `no_help` says of usual fixes why they bring
    nothing.
    """

    campaign: str | None
    runs: tuple[str, ...]
    kind: str
    framework: str | None
    gpu_util: float | None
    stand_in: bool | None
    abstains: str | None
    gates: tuple[KnownCause, ...]
    causes: tuple[DiagnosedCause, ...]
    missing: tuple[Missing, ...]
    facts: dict[str, SignalValue]
    layers: dict[str, LayerResult]
    difference: FromReference | None
    next_command: str
    failure: FailureLines | None = None
    unexplained: None = None
    ranks: RanksFinding | None = None
    no_help: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LayerAnswer(Answer):
    """`diagnose --layer`: one run with a layer taken away; see `LayerResult` for its figures.

    `device_time_s` is the run's. It is of no hypothesis and has no verdict.
    """

    action: str = "recorded_layer"
    campaign: str
    hypothesis: None = None
    role: str
    layer: str
    run: str
    runs: tuple[str, ...]
    baseline_runs: tuple[str, ...]
    verdict: None = None
    gates: tuple[()] = ()
    brief: None = None
    changed: str
    ratio: float | None
    step_ratio: float | None
    means: str
    device_time_s: float | None
    notes: tuple[str, ...]
    why: str
    next_command: str
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BusyPlace:
    """A line of the program, `train.py:87`, and its `share` (0 to 1) of the time of the thread that trains;
    `state` is `runs` or `waits`, whichever takes more of it."""

    site: str
    function: str
    share: float
    state: str
    code: str


@dataclass(frozen=True, kw_only=True)
class StepParts:
    """Where a step goes: `time_s` is what the rate of steps implies, `median_s` that of the usual one and
    `pauses` the share (0 to 1) of the time that steps far above it take beyond it. `shares` (0 to 1) are
    those of its parts by their names, {} if the program does not report them; `places` are the lines with the
    most time, the first three."""

    time_s: float | None
    shares: dict[str, float]
    places: tuple[BusyPlace, ...]
    median_s: float | None = None
    pauses: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunPhases:
    """How long a run took to the end of its first step, from there to its steady window, and in that.

    `within` are parts (0 to 1) of the window: evaluation, saving, between epochs. `most` is the phase beside
    the steps themselves that costs most over all planned steps, and its share of them; null if unknown.
    `start_up_place` is the line in which the training process was most before its first step, from a quarter
    of that time on, and `start_up_caller` the function of another file that called it; null if none is, or it
    was not watched then. `named` are those that log or optimizers name, two or more, `named_places` the line
    in which the training process was most in each, as in start-up, and `named_reason` is why such names are
    no phases, or why one that was asked for is missing.
    """

    start_up_s: float
    first_steps_s: float
    steady_s: float
    within: dict[str, float]
    most: str | None
    most_share: float | None
    start_up_place: BusyPlace | None = None
    start_up_caller: str | None = None
    named: tuple[PhaseFigures, ...] = ()
    named_reason: str | None = None
    named_places: dict[str, BusyPlace] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AttachedLook:
    """A job that ran already when it was looked at: process `pid` and all below it. `processes` are those
    that were looked at, as `evidence.json` has them, of `members` Python processes (null if none is Python);
    `cost` is what looking took, in cores, None if unknown."""

    pid: int
    members: int | None
    processes: tuple[dict[str, object], ...]
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class WhyAnswer(Answer):
    """`why`: one run of a command, or a look at one that runs already, and its diagnosis.

    `why`, `exit_status`, `window`, `reason`, `devices`, `across`, `throughput` and `failure` are as those of
    `sample`, `kind` to `missing` and `ranks` as those of `diagnose`. `problem` says what kept
    the look from seeing the training, and what to do about it; null if nothing did. `attached` is null of a
    command that was run. `phases` is null of a run without a step or a window. `folder` holds the evidence.
    """

    command: str
    outcome: str
    why: str | None
    exit_status: int | None
    duration_s: float | None
    window: SampledWindow | None
    reason: str | None
    devices: tuple[SampledDevice, ...]
    throughput: SampledRate
    step: StepParts
    failure: FailureLines | None
    problem: str | None
    kind: str
    framework: str | None
    abstains: str | None
    gates: tuple[KnownCause, ...]
    causes: tuple[DiagnosedCause, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]
    replayed: bool
    folder: str
    next_command: str
    attached: AttachedLook | None = None
    unexplained: None = None
    across: tuple[FigureAcross, ...] = ()
    ranks: RanksFinding | None = None
    phases: RunPhases | None = None
