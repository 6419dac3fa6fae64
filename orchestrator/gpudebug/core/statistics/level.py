"""The level of an unchanged program, which wanders, and what a change adds to it.

Each run shows the level, plus the change's effect if the change is in it, plus what others' share of its
time costs, plus noise. One Kalman filter over the runs in their order (Durbin and Koopman, *Time Series
Analysis by State Space Methods*, chapters 2 and 4) says effect and error; values are on a scale on which
differences add up: percentage points, or logarithms of ratios.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.intervals import SURE, t_quantile
from gpudebug.core.statistics.metrics import Metric

if TYPE_CHECKING:
    from gpudebug.core.answers.show import ChangedLevel, LevelPoint, VerdictCourse

WANDER = assumed("wander")
"""Variance by which the level may move from one place to the next, in units of a run's noise squared."""
LONG_S = assumed("long_s")
"""A run whose window is shorter varies more: what varies within it is averaged over less."""
SHORT = 1.1
"""Runs that vary by so much more than long ones count as short."""
WITHIN = assumed("within_points") / assumed("noise_points")
"""What varies within a run of `LONG_S`, in units of the noise that is assumed at first."""
HELD = int(assumed("wander_runs"))
"""Places after which the level of one program on one host has wandered as far as it does, if the runs before
a pause are not to be forgotten."""
_MOST = 99.0
_UNKNOWN = 1e8
_FIRST = 1e3
"""A prediction of this variance is none: the run was the first of its kind, and no surprise."""


class Noise(NamedTuple):
    """The run-to-run noise that is assumed at first, and how many runs that is worth. `relative`: values are
    logarithms, or shares of a figure."""

    sd: float
    runs: float = assumed("noise_runs")
    relative: bool = False

    def taken(self, others: float) -> float:
        """Return what others who take so many percent of a run's time take of its value if it goes by that
        time alone, in the unit of `sd`: as many points, and of a rate what makes it that of what is left."""
        return -math.log1p(-min(others, _MOST) / 100) if self.relative else others


POINTS = Noise(assumed("noise_points"))
"""Utilisation, in points."""
RATIOS = Noise(assumed("noise_rate"), relative=True)
"""The logarithm of a rate."""


class Seen(NamedTuple):
    """One run: its place among all runs of the bench, whether the change is in it, what it showed, and the
    percent of its time that others took (None: not recorded). `variance` is that of a run of `LONG_S` times
    what this one is shorter."""

    place: int
    changed: bool
    value: float
    others: float | None = None
    variance: float = 1.0


def relative_variance(seconds: float | None, error: float = 0.0) -> float:
    """Return how many times as much a run varies as one of `LONG_S`: by its window of so many seconds (None:
    it needs none), and by an `error` of its own in units of noise."""
    short = WITHIN**2 * (LONG_S / seconds - 1) if seconds is not None and 0 < seconds < LONG_S else 0.0
    return 1 + short + error**2


class Stand(NamedTuple):
    """The level as it is known after a run, beside what others took of it, with its standard error in units
    of noise."""

    place: int
    value: float
    spread: float


@dataclass(frozen=True, slots=True)
class Effect:
    """What the runs say of a change. `spread` is the standard error of `value` in units of `noise`, which has
    `freedom`; `trials` counts the runs with the change, which are `worth` so many of `LONG_S`, `closed` says
    that one without it came last.

    `earlier` is the mean of the changed runs less the level before the first of them, `earlier_spread` its
    standard error: a trial that leaves something behind makes its own baseline worse. `plain` is what
    the values say alone, where what others took explains a part. `stands` are the level after each run.
    """

    value: float
    spread: float
    noise: float
    freedom: float
    trials: int
    worth: float
    closed: bool
    earlier: float
    earlier_spread: float
    plain: Effect | None
    stands: tuple[Stand, ...]

    @property
    def error(self) -> float:
        return self.spread * self.noise

    def bounds(self, sure: float = SURE) -> tuple[float, float]:
        """Return the two-sided interval of this confidence."""
        half = t_quantile(0.5 + sure / 2, self.freedom) * self.error
        return self.value - half, self.value + half

    def earlier_below(self, least: float, sure: float) -> bool:
        """Tell whether the gain over the level before the change is surely (one-sided) below `least`."""
        return self.earlier + t_quantile(sure, self.freedom) * self.noise * self.earlier_spread < least

    def left_open(self, most: int) -> float:
        """How far the value may yet move, as a standard deviation, until `most` changed runs are made."""
        return self.error * math.sqrt(max(1 - self.trials / most, 0.0))


def follow(runs: Sequence[Seen], noise: Noise) -> Effect:
    """Filter the runs, oldest first; at least one. The share counts only if every run recorded it.

    What a share costs is unknown but for its size: about what is taken (`Noise.taken`), as a standard
    deviation. Without a changed run the effect is 0 with an endless spread.
    """
    shares = [run.others for run in runs]
    shared = None not in shares
    state = [runs[0].value, 0.0, 0.0]
    spread = [[_UNKNOWN, 0.0, 0.0], [0.0, _UNKNOWN, 0.0], [0.0, 0.0, (1 if shared else 0) / noise.sd**2]]
    squares, freedom, last = noise.runs * noise.sd**2, noise.runs, runs[0].place
    before: tuple[list[float], list[list[float]]] | None = None
    gains: list[float] = []
    met: list[float] = []
    own = worth = 0.0
    stands: list[Stand] = []
    for run in runs:
        others = noise.taken(run.others or 0.0) if shared else 0.0
        spread[0][0] += WANDER * max(0, run.place - last)
        last = run.place
        if run.changed:
            before = before or (list(state), [list(row) for row in spread])
            gains.append(run.value - before[0][0] - before[0][2] * others)
            met.append(others)
            own += run.variance
            worth += 1 / run.variance
        seen = (1.0, 1.0 if run.changed else 0.0, others)
        gain = [_product(row, seen) for row in spread]
        size = run.variance + _product(seen, gain)
        surprise = run.value - _product(seen, state)
        if size < _FIRST:
            squares += surprise**2 / size
            freedom += 1
        for i in range(3):
            state[i] += gain[i] * surprise / size
            for j in range(3):
                spread[i][j] -= gain[i] * gain[j] / size
        stands.append(Stand(run.place, state[0] + state[2] * others, math.sqrt(_beside(spread, others))))
    count = len(gains)
    return Effect(
        value=state[1] if count else 0.0,
        spread=math.sqrt(max(spread[1][1], 0.0)) if count else math.inf,
        noise=math.sqrt(squares / freedom),
        freedom=freedom,
        trials=count,
        worth=worth,
        closed=not runs[-1].changed,
        earlier=math.fsum(gains) / count if count else 0.0,
        earlier_spread=(
            math.sqrt(own / count**2 + _beside(before[1], math.fsum(met) / count)) if before else math.inf
        ),
        plain=follow([run._replace(others=None) for run in runs], noise) if shared else None,
        stands=tuple(stands),
    )


def _product(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _beside(spread: Sequence[Sequence[float]], others: float) -> float:
    """Return the variance of the level as a run shows it beside others that take so much."""
    return max(spread[0][0] + 2 * others * spread[0][2] + others**2 * spread[2][2], 0.0)


def places(starts: Sequence[float], durations: Sequence[float], most: int = 10_000) -> tuple[int, ...]:
    """The places of runs that began at these seconds and took so many: one each, and as many more as usual
    runs would have fitted into the pauses between, `most` into one. A clock that went back makes no pause.

    There may be one start more than durations: that of a run to come.
    """
    known = [seconds for seconds in durations if seconds > 0]
    usual = median(known) if known else 0.0
    found = [0] if starts else []
    for place in range(1, len(starts)):
        pause = starts[place] - starts[place - 1] - durations[place - 1]
        missed = int(min(pause / usual, most)) if usual > 0 and pause > 0 else 0
        found.append(found[-1] + 1 + missed)
    return tuple(found)


MOST = 20
"""Runs of a drawing: with its other lines they fill a small screen."""


def course(verdict: Mapping[str, Any] | None) -> VerdictCourse | None:
    """Make the picture of a verdict; None if it has none, as one of an older rule, without the metric, or of
    terms that name no bars."""
    # What shows a level alone need not load the answers.
    from gpudebug.core.answers.show import LevelPoint, VerdictCourse

    terms = verdict and verdict.get("terms")
    if not verdict or not terms or not verdict.get("course"):
        return None
    criteria = terms.get("criteria")
    asked: Mapping[str, Any] = criteria if isinstance(criteria, Mapping) else {}
    bars = {
        bar: float(value)
        for bar in ("failure", "success")
        if isinstance(value := asked.get(bar), (int, float)) and not isinstance(value, bool)
    }
    if len(bars) < 2 or "metric" not in verdict:
        return None
    lower, unit = terms.get("direction") == "lower", verdict.get("throughput_unit")
    metric = Metric(verdict["metric"], lower=lower, work=(unit or "", ""))
    return VerdictCourse(
        metric=metric.name,
        unit=metric.unit,
        lower=lower,
        **bars,
        points=[LevelPoint(**{**p, **_above(metric, p["level"], bars)}) for p in verdict["course"]],
        effect=_effect(metric, verdict, bars),
    )


def _above(metric: Metric, level: float, bars: Mapping[str, float]) -> dict[str, float]:
    """Return where the level would be with so much gain."""
    return {name: metric.shifted(level, metric.threshold(gain)) for name, gain in bars.items()}


def _effect(metric: Metric, verdict: Mapping[str, Any], bars: Mapping[str, float]) -> ChangedLevel | None:
    from gpudebug.core.answers.show import ChangedLevel

    before, delta = verdict.get("metric_before"), verdict["delta"] or {}
    ends: dict[str, float] = {e: delta[e] for e in ("value", "low", "high") if delta.get(e) is not None}
    if before is None or len(ends) < 3:
        return None
    after = _above(metric, before, ends)
    low, high = sorted((after["low"], after["high"]))
    text = numbers.improvement(verdict).partition(" ")[0]
    above = _above(metric, before, bars)
    return ChangedLevel(text=text, before=before, after=after["value"], low=low, high=high, **above)


def sentence(found: VerdictCourse) -> str:
    """`Level 27.4% during the trial, 63.6% with the change (95% CI 60.1 to 67); …`: its figures in words."""
    effect, last = found.effect, found.points[-1]
    bars = effect or last
    level = f"Level {_figure(found, last.level)}"
    if effect is not None:
        level = f"Level {_figure(found, effect.before)} during the trial"
        interval = numbers.bounds(_metric(found), effect.after, (effect.low, effect.high))
        level += f", {_figure(found, effect.after)} with the change (95% CI {interval})"
    failure, success = (_figure(found, bar) for bar in (bars.failure, bars.success))
    return f"{level}; failure is at {failure}, success at {success}."


def _figure(found: VerdictCourse, value: float) -> str:
    return numbers.figure(_metric(found), value)


def _metric(found: VerdictCourse) -> Metric:
    return Metric(found.metric, lower=found.lower, work=(found.unit.removesuffix("/s"), ""))


class CourseRow(NamedTuple):
    """A line of a drawing: its name and figure, an interval drawn with `line`, and marks at their values, the
    later above the earlier."""

    name: str
    figure: str
    line: str
    ends: tuple[float, float]
    marks: tuple[tuple[float, str], ...]


def drawing(found: VerdictCourse, columns: int) -> list[str]:
    """Draw a row a run, the newest `MOST`, and one of the effect, in ASCII; better is to the right.

    The last line says what the marks mean.
    """
    metric = _metric(found)
    rows = [_row(found, point) for point in found.points[-MOST:]]
    if found.effect is not None:
        rows.append(_effect_row(found.effect))
    name, figure = max(len(row.name) for row in rows), max(len(row.figure) for row in rows)
    axis = _Axis(metric, rows, columns - name - figure - 4)
    lines = [f"{row.name:<{name}}  {row.figure:>{figure}}  {axis.drawn(row)}".rstrip() for row in rows]
    failure, success = (numbers.threshold(metric, bar) for bar in (found.failure, found.success))
    legend = f"A unchanged, T changed; | level, - 95% band; : failure {failure} and success {success}"
    return [" " * (name + figure + 4) + axis.ends(), *lines, legend]


def _row(found: VerdictCourse, p: LevelPoint) -> CourseRow:
    letter = "T" if p.part == "trial" else "A"
    marks = (p.failure, ":"), (p.success, ":"), (p.level, "|"), (p.value, letter)
    return CourseRow(f"{p.run.split('-')[0]} {letter}", _figure(found, p.value), "-", (p.low, p.high), marks)


def _effect_row(e: ChangedLevel) -> CourseRow:
    marks = (e.failure, ":"), (e.success, ":"), (e.before, "|"), (e.after, "T")
    return CourseRow("effect", e.text, "=", (e.low, e.high), marks)


class _Axis:
    """The columns of a drawing, on the scale on which runs are compared."""

    def __init__(self, metric: Metric, rows: Sequence[CourseRow], width: int) -> None:
        values = [metric.scale(v) for row in rows for v in (*row.ends, *(value for value, _ in row.marks))]
        self._metric, self._low, self._high, self._width = metric, min(values), max(values), max(width, 2)

    def ends(self) -> str:
        """Name the values at both ends."""
        ends = (self._metric.unscaled(end) for end in (self._low, self._high))
        low, high = (numbers.figure(self._metric, end) for end in ends)
        return f"{low} {high.rjust(self._width - len(low) - 1)}"

    def drawn(self, row: CourseRow) -> str:
        first, last = sorted(map(self._column, row.ends))
        line = [row.line if first <= at <= last else " " for at in range(self._width)]
        for value, letter in row.marks:
            line[self._column(value)] = letter
        return "".join(line)

    def _column(self, value: float) -> int:
        share = (self._metric.scale(value) - self._low) / ((self._high - self._low) or 1.0)
        return round(share * (self._width - 1))
