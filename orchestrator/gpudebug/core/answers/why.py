"""What `why` answers: how busy the devices are, where a step goes, and what to try first."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.devices import FigureAcross
from gpudebug.core.answers.diagnosis import DiagnosedCause, KnownCause, Missing, UnexplainedLine
from gpudebug.core.answers.ranks import RanksFinding
from gpudebug.core.answers.sample import FailureLines, SampledDevice, SampledRate, SampledWindow


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
    """Where a step goes: `time_s` is its median, `shares` (0 to 1) are those of its parts by their names, {}
    if the program does not report them; `places` are the lines with the most time, the first three."""

    time_s: float | None
    shares: dict[str, float]
    places: tuple[BusyPlace, ...]


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
    `sample`, `kind` to `missing`, `unexplained` and `ranks` as those of `diagnose`. `problem` says what kept
    the look from seeing the training, and what to do about it; null if nothing did. `attached` is null of a
    command that was run. `folder` holds the evidence.
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
    unexplained: UnexplainedLine | None = None
    across: tuple[FigureAcross, ...] = ()
    ranks: RanksFinding | None = None
