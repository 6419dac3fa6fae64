"""What `analyze` answers, by the kind of file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import Answer, omitted
from gpudebug.core.answers.devices import FigureAcross
from gpudebug.core.answers.sample import (
    FailureLines,
    LatencyFigures,
    SampledDevice,
    SampledRate,
    SampledWindow,
)
from gpudebug.core.answers.sections import SectionsAnswer

Table = list[dict[str, Any]]
"""Rows of a trace, with the keys that docs/reference lists and --detailed writes."""


@dataclass(frozen=True, kw_only=True)
class SamplesAnswer(Answer):
    """Samples: their steady window, and what each device did in it; `reason` says why there is no window.

    `awaited` is the device that the others wait for, as evidence.json has it, null if there is none or with
    `awaited_reason`; `notes` say what it does, and why the mean utilisation misleads.

    `throughput` to `failure` are as those of `sample`: of the run folder around the samples, or kept of
    `sample -o`; null if only the samples and their log are known.
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
    written: tuple[str, ...] | None = omitted()
    across: tuple[FigureAcross, ...] = ()
    joules_per_step: float | None = None
    awaited: dict[str, Any] | None = None
    awaited_reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoggedLoss:
    """The loss of a log: `points` counts its values, `of` says whose it is, or since when it is judged."""

    name: str | None
    trend: str
    points: int
    first: float | None
    last: float | None
    of: str | None = None


@dataclass(frozen=True, kw_only=True)
class LoggedCount:
    """A counter of work: how far it got."""

    unit: str
    name: str
    last: int


@dataclass(frozen=True, kw_only=True)
class RewardFigure:
    """The reward of a log: `points` counts its values, `over` is what its course is over."""

    name: str
    trend: str
    points: int
    first: float | None
    last: float | None
    over: str | None


@dataclass(frozen=True, kw_only=True)
class LogAnswer(Answer):
    """A log of a training, or of a program that infers.

    `data_s` and `update_s` are seconds a step; null is not printed. `notes` say what is wrong with counters
    and rewards.
    """

    kind: str = "training_log"
    file: str
    framework: str | None
    loss: LoggedLoss
    steps: int | None
    steps_per_s: float | None
    data_s: float | None
    update_s: float | None
    work: LoggedCount | None
    reward: RewardFigure | None
    latency: LatencyFigures | None
    failure: FailureLines | None
    notes: tuple[str, ...]
    written: tuple[str, ...] | None = omitted()


@dataclass(frozen=True, kw_only=True)
class TraceAnswer(Answer):
    """A trace: what the devices did, why they idled, and what ran. Keys with `_s` are seconds, `_us`
    microseconds, shares are 0 to 1; null is not known. `reason` says why no utilisation is known."""

    kind: str = "trace"
    file: str
    truncated: bool
    notes: list[str]
    events: int
    device_events: int
    span_s: float
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
    written: tuple[str, ...] | None = omitted()


OneFile = SamplesAnswer | LogAnswer | SectionsAnswer | TraceAnswer


@dataclass(frozen=True, kw_only=True)
class FilesAnswer(Answer):
    """Several files; `merged` is what all section reports say together."""

    files: tuple[OneFile, ...]
    merged: SectionsAnswer | None = omitted()
    written: tuple[str, ...] | None = omitted()


AnalyzeAnswer = OneFile | FilesAnswer
