"""What a log says, as one frozen record."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudebug.core.records import Failure, Trend
from gpudebug.core.trainlog.latency import PrintedLatencies
from gpudebug.core.trainlog.series import Point
from gpudebug.core.trainlog.step_times import Line
from gpudebug.core.trainlog.steps import CountedBar
from gpudebug.core.trainlog.work import LoggedWork


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log says. Times are seconds, rates per second; None is not known.

    `loss` is an even spread of the printed values (equal neighbours count once), `loss_begin` the first of
    them, `points` how many there were, `first` and `last` the ends; `loss_of` says whose it is where several
    ranks print one. `of_learner` says that they are a critic's or a policy's, which need not fall.
    `step_unit` is what the log counts: step, timesteps (of an environment), samples or epoch; `step_times`
    are (count, seconds since launch at which it was first seen) and `progress_per_s` the rate in that unit.
    `steps` and `steps_per_s` are the optimiser's, None if the log counts something else. `rate_source` is the
    source of the rate: arrival, stamps, bar or printed. `durations` are the printed times of single steps, or
    means over a few; `speech` the lines that tell of speed in other words, by topic; `latencies` how long
    single inferences took; `extra` holds the user's other patterns, `work` the counters and rates of work,
    and the rewards; `occasions` counts evaluations, checkpoints and log lines.
    `bars` are the progress bars. `objective` is the last line that says that another objective is trained
    from there on: the trend is that of what follows it. `resumed` is the line that says that an earlier run
    is continued, `cached` the one that says that a cache was found, `span` the first and the last count.
    """

    framework: str | None = None
    loss_name: str | None = None
    loss: tuple[Point, ...] = ()
    loss_begin: tuple[Point, ...] = ()
    points: int = 0
    of_learner: bool = False
    first: float | None = None
    last: float | None = None
    loss_of: str | None = None
    trend: Trend = Trend.UNKNOWN
    steps: int | None = None
    step_unit: str | None = None
    total_steps: int | None = None
    step_times: tuple[tuple[int, float], ...] = ()
    steps_per_s: float | None = None
    progress_per_s: float | None = None
    rate_source: str | None = None
    data_s: float | None = None
    update_s: float | None = None
    failure: Failure | None = None
    durations: tuple[Point, ...] = ()
    speech: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    latencies: PrintedLatencies = field(default_factory=PrintedLatencies)
    objective: str | None = None
    resumed: str | None = None
    cached: str | None = None
    span: tuple[int, int] | None = None
    bars: tuple[CountedBar, ...] = ()
    occasions: dict[str, int] = field(default_factory=dict)
    extra: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    work: LoggedWork = field(default_factory=LoggedWork)

    @property
    def loss_is(self) -> str | None:
        """Whose loss was judged, and since when, in words; None where there is nothing to say."""
        since = f"since {self.objective!r}" if self.objective is not None and self.points else None
        return "; ".join(filter(None, (self.loss_of, since))) or None
