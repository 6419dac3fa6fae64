"""The streaming reader of a training program's output.

bytes -> segments (text) -> shape of each (shape) -> readings -> steps, losses, durations, failure (state).
Memory is bounded whatever comes; the result does not depend on how the bytes were cut into chunks.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpudebug.core.errors import ConfigError
from gpudebug.core.lazy import regex
from gpudebug.core.text.expressions import Expression, Unbounded, bounded
from gpudebug.core.trainlog.failure import classify_failure
from gpudebug.core.trainlog.latency import PrintedLatencies
from gpudebug.core.trainlog.losses import shown_name
from gpudebug.core.trainlog.phase_lines import LoggedPhase, separated
from gpudebug.core.trainlog.readings import Line
from gpudebug.core.trainlog.runs import LogRuns
from gpudebug.core.trainlog.state import GROUP, PATTERN_SECONDS, LogState
from gpudebug.core.trainlog.steps import BAR, CountedBar, StepCounter, unit_name, unit_of
from gpudebug.core.trainlog.text import Splitter
from gpudebug.core.trainlog.timing import COARSE_SPAN, PRINTED, rate
from gpudebug.core.trainlog.work import LoggedWork
from gpudebug.core.words import PHASE, Trend, WorkName

if TYPE_CHECKING:
    from gpudebug.core.records import Failure
    from gpudebug.core.trainlog.series import Point


@dataclass(frozen=True, slots=True)
class LogProgress:
    """How far a log came in what it counts: `unit` is its own word in the plural, `total` what it plans.

    `epoch_s` is what an epoch takes as the program prints it, `between_s` what passes between two of them.
    """

    unit: str
    done: int
    total: int | None = None
    per_s: float | None = None
    epoch_s: float | None = None
    between_s: float | None = None


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log says. Times are seconds, rates per second; None is not known.

    `loss` is an even spread of the printed values (equal neighbours count once), `loss_begin` the first of
    them, `points` how many there were, `first` and `last` the ends; `loss_of` says whose it is where several
    ranks print one; `disordered`: its lines are out of order; `clock_back`: their stamps go back by more than
    ten seconds; `summed`: they are sums over several steps, and `loss` is that of one; `pages` are HTML pages
    that were left out; `runs` began in the log, the last is what is told; `followed`: another log's loss is
    before or behind it. `of_learner` says that they are a critic's or a policy's, which need not fall.
    `step_unit` is what the log counts: step, timesteps (of an environment), samples or epoch; `step_times`
    are (count, seconds since launch at which it was first seen) and `progress_per_s` the rate in that unit;
    `progress` says the same in the log's own word.
    `steps` and `steps_per_s` are the optimiser's, None if the log counts something else. `rate_source` is the
    source of the rate: arrival, stamps, bar or printed. `durations` are the printed times of single steps, or
    means over a few; `speech` the lines that tell of speed in other words, by topic; `latencies` how long
    single inferences took; `extra` holds the user's other patterns, `work` the counters and rates of work,
    and the rewards; `occasions` counts evaluations, checkpoints and log lines.
    `bars` are the progress bars. `objective` is the last line that says that another objective is trained
    from there on: the trend is that of what follows it. `resumed` is the line that says that an earlier run
    is continued, `cached` the one that says that a cache was found, `span` the first and the last count,
    `phases` the stretches in which its lines name one phase.
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
    disordered: bool = False
    clock_back: bool = False
    summed: bool = False
    pages: int = 0
    runs: int = 1
    followed: bool = False
    trend: Trend = Trend.UNKNOWN
    progress: LogProgress | None = None
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
    phases: tuple[LoggedPhase, ...] = ()

    @property
    def loss_is(self) -> str | None:
        """Whose loss was judged, and since when, in words; None where there is nothing to say."""
        since = f"since {self.objective!r}" if self.objective is not None and self.points else None
        return "; ".join(filter(None, (self.loss_of, since))) or None


class LogReader:
    """Reads output as it comes. `patterns` is the user's `log:` mapping, and `phase:NAME` of each phase that
    gpudebug.yaml names; ConfigError if it is broken.

    By `clock` they get some seconds in all: from a log that takes them longer, they tell nothing.
    """

    def __init__(self, patterns: Mapping[str, str] | None = None, clock: Callable[[], float] = float) -> None:
        self._splitter = Splitter()
        figures, phases = separated(patterns or {})
        named, declared = compile_patterns(figures), compile_patterns(phases, PHASE)
        self._runs = LogRuns(lambda: LogState(named, clock, declared))

    def feed(self, data: bytes, time: float | None = None) -> None:
        """Takes a chunk in, cut anywhere; `time` is when it was there, in seconds since launch."""
        read = self._runs.read
        for segment, at in self._splitter.push(data, time):
            read(segment, at)

    @property
    def _state(self) -> LogState:
        return self._runs.state

    @property
    def step(self) -> int | None:
        """The last step reached so far, as printed; None while nothing is known to count steps."""
        leader = self._state.steps.leader
        return self._state.steps.current if leader is not None and leader.counts else None

    @property
    def step_unit(self) -> str | None:
        """Return what `step` counts: step, timesteps, samples or epoch."""
        return unit_of(self._state.steps.leader)

    @property
    def total_steps(self) -> int | None:
        steps = self._state.steps
        return steps.total(steps.leader)

    @property
    def loss(self) -> float | None:
        """The training loss printed last."""
        return self._state.losses.last(self._state.losses.best())

    @property
    def reward(self) -> float | None:
        """The reward of training printed last."""
        return self._state.work.reward

    @property
    def rate(self) -> tuple[float, str] | None:
        """How much of its work a second the program printed last, and what it counts."""
        return self._state.work.rate

    @property
    def latency(self) -> float | None:
        """The median of the latencies printed last, in seconds."""
        return self._state.latencies.recent

    def summary(self, exit_status: int | None = None, signal: int | None = None) -> LogSummary:
        """Return what the log says up to now, the unfinished line included; reading may go on afterwards.

        `exit_status` (negative or 128+N for a signal) and `signal` decide about `failure`.
        """
        runs = self._runs
        segment, time = self._splitter.pending()
        if segment:
            runs = copy.deepcopy(runs)
            runs.read(segment, time)
        return _summarised(runs, exit_status, signal)


_LOST = regex(
    r"\bloss(?:es)?\b[^.;]{0,50}\b(?:not finite|non-?finite|infinite|nan|inf)\b"
    r"|\b(?:non-?finite|nan|infinite)\b[^.;]{0,15}\bloss\b",
    re.I,
)
"""What a program says that ends itself since its loss is no number."""


def _summarised(runs: LogRuns, exit_status: int | None, signal: int | None) -> LogSummary:
    state = runs.state
    given_up = state.pattern_seconds > PATTERN_SECONDS
    # What was read up to there would pass for the whole.
    best = None if given_up and "loss" in state.patterns else state.losses.best()
    counter = None if given_up and "step" in state.patterns else state.steps.counted(state.arrivals)
    if counter and (counter.score()[0] < 0 or counter.adrift or counter.key[-1] in state.fractional):
        counter = None
    unit = unit_of(counter)
    speed, source = _rate(state, counter, unit)
    failure = classify_failure(state.scan, exit_status, signal, state.progress)
    lost = failure is not None and any(_LOST.search(line) for line in failure.lines)
    return LogSummary(
        framework=max(state.frameworks, key=state.frameworks.__getitem__, default=None),
        loss_name=shown_name(best) if best else None,
        loss=best.shown() if best else (),
        loss_begin=best.begun() if best else (),
        of_learner=best is not None and best.of_learner,
        points=best.count if best else 0,
        first=best.first if best else None,
        last=state.losses.last(best),
        loss_of=state.losses.spoken_by(best),
        disordered=best is not None and best.disordered,
        clock_back=state.stamps.go_back,
        summed=best is not None and best.summed,
        pages=state.pages.count,
        runs=runs.count,
        followed=state.losses.followed(best),
        trend=Trend.NAN if lost else state.losses.trend(best),
        progress=_progress(state, counter, speed, best is not None),
        steps=state.steps.reached(counter) if counter and unit == "step" else None,
        step_unit=unit,
        total_steps=state.steps.total(counter) if unit == "step" else None,
        step_times=counter.times.items() if counter and state.arrivals else (),
        steps_per_s=speed if unit in ("step", None) else None,
        progress_per_s=speed if unit is not None else None,
        rate_source=source,
        data_s=state.timing.data_s(),
        update_s=state.timing.update_s(),
        failure=failure,
        durations=state.timing.durations(),
        speech={topic: lines.items() for topic, lines in state.speech.items()},
        latencies=state.latencies.printed(),
        objective=state.objectives.changed,
        resumed=state.occasions.resumed,
        cached=state.occasions.cached,
        span=(counter.first, counter.value) if counter and counter.seen else None,
        bars=state.steps.bars() if state.arrivals else (),
        occasions=state.occasions.counted(state.seen, best.count if best else 0),
        extra={} if given_up else {name: series.items() for name, series in state.named.items()},
        work=state.work.summary(),
        phases=() if given_up and state.declared else tuple(state.phases.stretches),
    )


def _progress(
    state: LogState, counter: StepCounter | None, speed: float | None, has_loss: bool
) -> LogProgress | None:
    if counter is None or not counter.counts:
        return None
    total = counter.total if counter.kind == "epoch" else state.steps.total(counter)
    done, unit = state.steps.reached(counter), unit_name(counter)
    if state.of_environment and counter.kind == "bar" and not has_loss:
        unit = WorkName.ENVIRONMENT_STEPS  # A bar without words or losses is of what a run collects.
    of_epochs = state.timing.epoch_s(), state.timing.between_epochs_s()
    return LogProgress(unit, done, total if total is None or total >= done else None, speed, *of_epochs)


def _rate(state: LogState, counter: StepCounter | None, unit: str | None) -> tuple[float | None, str | None]:
    if counter is not None and (state.arrivals or not state.stamps.go_back):
        measured = rate(counter.times.items(), 0.0 if state.arrivals or state.stamps.fine else COARSE_SPAN)
        if measured is not None:
            return measured, "arrival" if state.arrivals else "stamps"
    whole = state.steps.round_of(counter)
    if whole is not None and (rounds := state.timing.shown_per_s(whole[0])):
        return rounds[0] * whole[1], rounds[1]
    if unit == "epoch" and (of_epochs := state.timing.epochs_per_s()):
        return of_epochs, PRINTED
    if counter is not None and counter.key[-1] == BAR:
        return state.timing.shown_per_s(counter.key) or (None, None)
    other = unit in ("samples", "epoch") or (counter is not None and unit_name(counter) == "episodes")
    steps = counter.reached if counter is not None else None
    printed = None if other else state.timing.steps_per_s(state.steps.bar_of(counter), steps)
    return printed if printed else (None, None)


SIMPLER = r"write it with fewer repeats, as in loss[=:]\s*(?P<value>\S+)"


def compile_patterns(patterns: Mapping[str, str] | None, of: str = "log.") -> dict[str, Expression]:
    """`log:` of the configuration compiled; ConfigError for one that is no expression, lacks the group (a
    phase's needs none), or could take for ever on some line."""
    compiled: dict[str, Expression] = {}
    for name, pattern in (patterns or {}).items():
        try:
            compiled[name] = bounded(pattern)
        except Unbounded as error:
            raise ConfigError(f"{of}{name}: {pattern!r} {error}", next=SIMPLER) from None
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(
                f"{of}{name}: not a regular expression: {error}", next=f"mend the pattern {pattern!r}"
            ) from error
        if of != PHASE and GROUP not in compiled[name].pattern.groupindex:
            raise ConfigError(
                f"{of}{name}: the pattern {pattern!r} has no group named `{GROUP}`",
                next=f"put (?P<{GROUP}>...) around the number",
            )
    return compiled
