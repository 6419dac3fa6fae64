"""What a program's log shows: the answer of `analyze` for one, and what others quote of it."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer, omitted


@dataclass(frozen=True, kw_only=True)
class LatencyFigures:
    """Latencies that a program printed, in seconds: `count` of them, after `warmup` leading ones were cut.

    Percentiles are null if there are too few; `count` is null if it printed figures over all of them only.
    """

    count: int | None
    warmup: int
    first_s: float | None
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


@dataclass(frozen=True, kw_only=True)
class FailureLines:
    """Why a run failed: its class, and the lines of the log that say so."""

    class_: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrintedSection:
    """A line of a printed tree: `depth` from 0, the `share` (0 to 1) of the outermost section around it."""

    name: str
    depth: int
    time_s: float
    share: float | None


@dataclass(frozen=True, slots=True)
class PrintedSections:
    """The last tree of section times that a program printed into its log, under this title."""

    title: str
    sections: tuple[PrintedSection, ...]


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
class ProgressFigure:
    """How far a log came in what it counts: `unit` is its own word (iterations, batches, epochs, …), `total`
    what it plans, `per_s` the rate in the same unit. `epoch_s` is what an epoch takes as the program prints
    it, `between_s` what passes between two epochs; null if the log does not show them."""

    unit: str
    done: int
    total: int | None
    per_s: float | None
    epoch_s: float | None = None
    between_s: float | None = None


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

    `steps` are those of the training, null if the log counts epochs, frames or samples: see `progress`.
    `data_s` and `update_s` are seconds a step; null is not printed. `notes` say what is wrong with counters,
    rewards and the file.
    """

    kind: str = "training_log"
    file: str
    framework: str | None
    loss: LoggedLoss
    progress: ProgressFigure | None
    steps: int | None
    steps_per_s: float | None
    data_s: float | None
    update_s: float | None
    work: LoggedCount | None
    reward: RewardFigure | None
    latency: LatencyFigures | None
    failure: FailureLines | None
    notes: tuple[str, ...]
    sections: PrintedSections | None = omitted()
    written: tuple[str, ...] | None = omitted()
