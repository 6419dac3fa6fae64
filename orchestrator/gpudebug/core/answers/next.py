"""What `next`, `wait`, `baseline`, `submit` and `stop` answer: one record for each action.

Units: seconds, percent of utilisation, differences in percentage points. None is unknown, or does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer, PhaseFigures, omitted
from gpudebug.core.answers.diagnosis import LikelyCause
from gpudebug.core.answers.show import ProbeSide
from gpudebug.core.answers.status import (
    DeviceValue,
    FigureAcross,
    GateRow,
    Resolution,
    WorkFigure,
)


@dataclass(frozen=True, kw_only=True)
class NextAnswer(Answer):
    """What every action answers; each has more keys of its own.

    `brief` is a page in Markdown for the one whose turn it is, `why` the reason of the action, `files` are
    what to look at, `notes` what else happened. `tell` is, where a session or the campaign ends, what can be
    handed on to the user as it is: cause, measured gain, change, and what to run.
    """

    action: str
    campaign: str
    hypothesis: int | None = None
    verdict: str | None = None
    gates: tuple[GateRow, ...] = ()
    brief: str | None = None
    why: str
    next_command: str | None = "gpudebug next"
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tell: str | None = omitted()


@dataclass(frozen=True, kw_only=True)
class RecordedVerdict(NextAnswer):
    """A trial with its verdict; None if it came `late`, when the claim was another's.

    `decided` says why it was chosen, `unready` which could not be tested before it; `figures` are the lines
    of its Result in the progress file, `probe` the reports from inside both sides.
    """

    action: str = "tested"
    title: str
    late: bool
    decided: str
    figures: dict[str, str]
    probe: tuple[ProbeSide, ...]
    unready: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordedBaseline(NextAnswer):
    """A baseline with its figures, the mean over its runs; `work` is None if they count nothing in common.

    `learning` is what learning is judged by, None if nothing is or can be.
    `advice` says what would make its evidence sufficient. `baselines` are all that `gpudebug baseline`
    recorded, this one among them. `across` compares its devices if there are several, `phases` are those of
    its runs.
    """

    action: str = "recorded_baseline"
    role: str
    gpu_util: float | None
    gpu_util_text: str
    metric: str
    metric_text: str
    steps_per_s: float | None
    throughput_text: str
    work: WorkFigure | None = None
    work_text: str | None = None
    loss: str
    learning: str | None = None
    probe: tuple[ProbeSide, ...]
    advice: tuple[str, ...]
    baselines: tuple[RecordedBaseline, ...] | None = omitted()
    across: tuple[FigureAcross, ...] = ()
    phases: tuple[PhaseFigures, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordedAA(NextAnswer):
    """`baseline --aa`: the workload against its own baseline, with the verdict that nothing changed got.

    `difference` is in the terms of the campaign's metric, with its interval.
    """

    action: str = "recorded_aa"
    role: str
    metric: str
    difference: str | None
    delta_pp: float | None
    delta_ci: tuple[float | None, float | None] | None
    throughput_ratio: float | None
    throughput_ci: tuple[float | None, float | None] | None
    resolution: Resolution | None
    baseline_runs: tuple[str, ...]
    runs: tuple[str, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RecordedProfile(NextAnswer):
    """`baseline --torch-profile`: one run for its `trace`, which is as `run.json` has it, and its `path`."""

    action: str = "recorded_profile"
    role: str
    run: str
    trace: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Recovered(NextAnswer):
    """What was `done` about a run, or a hypothesis, that was cut off."""

    action: str = "recovered"
    run: str | None
    done: str


@dataclass(frozen=True, kw_only=True)
class Request(NextAnswer):
    """Nothing to measure: `propose`, `implement` or `stop`. `worktree` is where the code is written;
    `diagnosis` is of a request to propose, as `diagnose` has them."""

    worktree: str | None
    diagnosis: tuple[LikelyCause, ...] | None = omitted()


@dataclass(frozen=True, kw_only=True)
class SessionDone(NextAnswer):
    """A session that has had its hypothesis has to stop."""

    action: str = "stop"
    session_done: bool = True
    next_command: str | None = None


@dataclass(frozen=True, kw_only=True)
class Running(NextAnswer):
    """A run that is under way, how far it is, and whose it is. `gpu_util` is the mean so far.

    `runs_done` counts the runs of the same command that have ended; between two, `run` is the last one.
    `latency_s` is the median of the latencies printed last. `least` is the least busy device of several.
    """

    action: str = "running"
    run: str | None
    role: str | None
    step: int | None
    steps: int | None
    left_s: float | None
    elapsed_s: float | None
    gpu_util: float | None
    latency_s: float | None = None
    runs_done: int
    session: str | None
    since: str
    detached: bool
    least: DeviceValue | None = None


@dataclass(frozen=True, kw_only=True)
class NothingRunning(NextAnswer):
    """Nothing to wait for."""

    action: str = "idle"


@dataclass(frozen=True, kw_only=True)
class StopAnswer(Answer):
    """The `job` of the allocation that was ended; null if none was under way."""

    action: str = "stopped"
    campaign: str
    job: str | None
    why: str
    next_command: str = "gpudebug status"


@dataclass(frozen=True, kw_only=True)
class SubmitAnswer(Answer):
    """`action` is waiting or running of the allocation's `job`, inside if this process is in one already,
    stop if nothing is to be measured any more, and printed for the batch `script`, else null."""

    action: str
    campaign: str
    job: str | None
    script: str | None
    why: str
    next_command: str = "gpudebug next"


ACTIONS: dict[str, type[NextAnswer]] = {
    "tested": RecordedVerdict,
    "recorded_baseline": RecordedBaseline,
    "recorded_aa": RecordedAA,
    "recorded_profile": RecordedProfile,
    "recovered": Recovered,
    "propose": Request,
    "implement": Request,
    "stop": Request,
    "running": Running,
    "idle": NothingRunning,
}
"""The record of each action; a session that is done has a `stop` of its own."""
