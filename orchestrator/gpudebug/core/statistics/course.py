"""The picture of a verdict: the level of the unchanged program, the runs in their order, the thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.answers.show import ChangedLevel, LevelPoint, VerdictCourse
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric

MOST = 20
"""Runs of a drawing: with its other lines they fill a small screen."""


def course(verdict: Mapping[str, Any] | None) -> VerdictCourse | None:
    """Make the picture of a verdict; None if it has none, as one of an older rule or without the metric."""
    terms = verdict and verdict.get("terms")
    if not verdict or not terms or not verdict.get("course"):
        return None
    lower, unit = terms["direction"] == "lower", verdict.get("throughput_unit")
    metric = Metric(verdict["metric"], lower=lower, work=(unit or "", ""))
    bars = {name: float(terms["criteria"][name]) for name in ("failure", "success")}
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
    before, delta = verdict["metric_before"], verdict["delta"]
    if before is None or delta is None:
        return None
    after = _above(metric, before, {end: delta[end] for end in ("value", "low", "high")})
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
