"""A campaign in one picture: what was tested, what was gained, how busy the device was before and after."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from gpudebug.core.campaign import overview
from gpudebug.core.inside.sections.names import short
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.edges.charts import marks, timeline
from gpudebug.edges.charts.canvas import MUTED, figure, padded, plain, png

ROWS = 24
"""So many tested hypotheses are drawn, those that tell most."""
STAGES = 12
"""So many accepted changes are drawn, the last ones."""

WIDTH = 11
_HEAD, _ROW, _AROUND, _EMPTY = 0.95, 0.37, 1.15, 0.6
_ALONE, _BELOW = 1.9, 3.1
_TITLE, _LINE, _WHY = 78, 150, 40
_NAME, _LONGEST_NAME = 40, 400
_ABREAST = 5
_GAINED = marks.of_status("VALIDATED").colour

_KEY: Any = {"fontsize": 8.5, "frameon": False, "borderaxespad": 0.2, "columnspacing": 1.4}
Data = Mapping[str, Any]


class MetricLevel(NamedTuple):
    """A figure of the metric that a line marks."""

    name: str
    colour: str
    style: str
    value: Any = None


_LEVELS = {
    "start": MetricLevel("baseline", MUTED, "-"),
    "now": MetricLevel("now", marks.AFTER, "-"),
    "target": MetricLevel("target", marks.INK, ":"),
    "reference": MetricLevel("reference", marks.INK, "--"),
}


def campaign(data: Data) -> bytes:
    """The picture of a report's data, whatever there is of it: with no runs it says so."""
    rows = overview.rows(data["hypotheses"], ROWS)
    sides = _sides(data)
    staged = bool(data["gain"] and data["gain"]["accepted"])
    heights = [_HEAD, _AROUND + _ROW * len(rows) if rows else _EMPTY]
    if staged or sides:
        heights.append(_BELOW if staged or len(sides) > 1 else _ALONE)
    with figure(WIDTH, sum(heights)) as made:
        padded(made)
        parts: Any = made.subfigures(len(heights), 1, height_ratios=heights)
        _head(parts[0], data, len(rows))
        if rows:
            _hypotheses(parts[1].subplots(), rows, _Scale(data))
        else:
            _nothing(parts[1], data)
        if len(heights) > 2:
            _below(parts[2], data, sides, staged)
        return png(made)


def _head(part: Any, data: Data, drawn: int) -> None:
    status = data["status"]
    title = short(f"{status['campaign']}: {overview.headline(data)}", _TITLE)
    part.text(0.015, 0.90, title, fontsize=14, fontweight="bold", va="top", color=marks.INK)
    hypotheses = data["hypotheses"]
    left = len(overview.tested(hypotheses)) - drawn
    text = overview.tally(hypotheses) + (f"; {left} of those tested are not drawn" if left else "")
    part.text(0.015, 0.48, short(text, _LINE), fontsize=10, va="top", color=marks.INK)
    about = f"{overview.device(data)}; gpudebug {data['gpudebug']}, {data['made'][:10]}"
    part.text(0.015, 0.20, short(about, _LINE), fontsize=9, va="top", color=MUTED)


def _nothing(part: Any, data: Data) -> None:
    text = f"Next: {data['status']['next']['why']}"
    part.text(0.015, 0.6, short(text, _LINE), fontsize=10, va="center", color=marks.INK)


class _Scale:
    """Where a hypothesis lies: in percent of utilisation; for another metric how many times better than the
    baseline it was compared with."""

    def __init__(self, data: Data) -> None:
        gain = dict(data["gain"] or {"metric": data["status"]["metric"], "lower": False})
        if not gain.get("accepted"):
            gain["now"] = None
        self.metric = Metric(gain["metric"], gain["lower"])
        self._name, self._start = overview.utilisation(data), gain.get("start")
        known = [level._replace(value=gain.get(key)) for key, level in _LEVELS.items()]
        self.levels = [level for level in known if level.value is not None]

    @property
    def label(self) -> str:
        better = f"{self.metric.name}, times better than the baseline"
        return f"{self._name} in %" if self.metric.points else better

    def level(self, value: float) -> float | None:
        """Where a value of the metric lies; None if it has no ratio to the first baseline."""
        if self.metric.points:
            return value
        if not self._start or self._start <= 0 or value <= 0:
            return None
        return self.metric.improvement(self.metric.scale(value) - self.metric.scale(self._start))

    def span(self, h: overview.Hypothesis) -> tuple[float, float, float | None, float | None] | None:
        """Before, after, and the interval of after; None if no runs tell."""
        found = overview.effect(h)
        if found is None:
            return None
        before = h["before"] if h["delta_pp"] is not None else 1.0
        if before is None or (h["delta_pp"] is not None) != self.metric.points:
            return None
        low, high = found["low"], found["high"]
        added = before if self.metric.points else 0.0
        bounds = (None, None) if low is None or high is None else (added + low, added + high)
        return before, added + found["value"], *bounds


def _hypotheses(axes: Any, rows: Sequence[overview.Hypothesis], scale: _Scale) -> None:
    for level in scale.levels:
        at = scale.level(level.value)
        if at is not None:
            text = f"{level.name} {numbers.figure(scale.metric, level.value)}"
            axes.axvline(at, color=level.colour, ls=level.style, lw=1.2, label=text, zorder=1)
    for place, h in enumerate(rows):
        axes.axhline(place, color=marks.PALE, lw=0.6, zorder=0)
        _row(axes, place, h, scale.span(h))
    axes.set_yticks(range(len(rows)), [_name(h) for h in rows], fontsize=8.5)
    for label, h in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if h["accepted"] is not None else "normal")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    if scale.metric.points:
        axes.set_xlim(0, 102)
    axes.set_xlabel(scale.label)
    _legend(axes, rows)
    plain(axes)


def _name(h: overview.Hypothesis) -> str:
    """Number and title on two lines at most."""
    title = short(h["title"], _LONGEST_NAME)
    return textwrap.fill(f"{h['number']}  {title}", _NAME, max_lines=2, placeholder="…")


def _row(axes: Any, place: int, h: overview.Hypothesis, span: tuple[Any, ...] | None) -> None:
    mark = marks.of_status(h["status"])
    if span is not None:
        before, after, low, high = span
        axes.plot([before, after], [place, place], color=mark.colour, lw=5, alpha=0.18, solid_capstyle="butt")
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=mark.colour, lw=1.6)
            axes.plot([low, high], [place, place], "|", color=mark.colour, ms=9, mew=1.6)
        axes.plot(after, place, mark.shape, color=mark.colour, ms=7, mec="white", mew=0.7, zorder=4)
    text = f" {h['status']}{', accepted' if h['accepted'] is not None else ''}  {_found(h)}"
    at = {"xy": (1.0, place), "xycoords": ("axes fraction", "data")}
    axes.annotate(text, **at, va="center", fontsize=8.5, color=mark.colour)


def _found(h: overview.Hypothesis) -> str:
    """Write the effect in few words, else why there is no effect."""
    effect = overview.effect_text(h)
    if effect == numbers.UNKNOWN and h["why"]:
        return short(h["why"], _WHY)
    return short(effect.replace("95% CI ", ""), _WHY)


def _legend(axes: Any, rows: Sequence[overview.Hypothesis]) -> None:
    """Levels first, then the shapes of the verdicts that are there."""
    seen = {h["status"] for h in rows}
    shapes = [
        Line2D([], [], ls="", marker=marks.of_status(s).shape, color=marks.of_status(s).colour, ms=7, label=s)
        for s in marks.statuses()
        if s in seen
    ]
    handles = [*axes.get_legend_handles_labels()[0], *shapes]
    columns = len(handles) if len(handles) <= _ABREAST else 4
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, **_KEY)


def _sides(data: Data) -> list[tuple[str, str, Any]]:
    """Title, colour and run of what is drawn over time: both sides of the best hypothesis, or a baseline."""
    runs, found = data["runs"], overview.best(data["hypotheses"])
    if found is None:
        workload = data["status"]["baselines"]["workload"]
        names = workload["runs"] if workload else []
        drawn = [("the baseline", marks.BEFORE, timeline.typical(names, runs))]
    else:
        number = found["number"]
        drawn = [
            ("before", marks.BEFORE, timeline.typical(found["baseline_runs"], runs)),
            (f"with hypothesis {number}", marks.AFTER, timeline.typical(found["trial_runs"], runs)),
        ]
    return [(title, colour, run) for title, colour, run in drawn if run is not None]


def _below(part: Any, data: Data, sides: Sequence[tuple[str, str, Any]], staged: bool) -> None:
    columns = 2 if staged and sides else 1
    places = part.add_gridspec(1, columns, wspace=0.06)
    if staged:
        _gains(part.add_subplot(places[0]), data["gain"], overview.utilisation(data))
    if sides:
        inner = places[columns - 1].subgridspec(len(sides), 1)
        _timelines(inner.subplots(sharex=True, squeeze=False)[:, 0], sides)


def _timelines(panels: Sequence[Any], sides: Sequence[tuple[str, str, Any]]) -> None:
    for axes, (title, colour, run) in zip(panels, sides, strict=True):
        timeline.draw(axes, run, colour, filled=True)
        window = run["window"]
        if window:
            axes.axvspan(window["start_s"], window["end_s"], color=MUTED, alpha=0.10, lw=0)
        text = f"{title}: gpu_util {numbers.percent(run['utilisation'])}, run {short(run['name'], 30)}"
        axes.set_title(text, loc="left", fontsize=9, color=colour)
        timeline.frame(axes)
        plain(axes)
    panels[-1].set_xlabel("s since launch (shaded: what is counted)")


def _gains(axes: Any, gain: Mapping[str, Any], name: str) -> None:
    """The accepted changes as steps from the first baseline to the one of now."""
    metric = Metric(gain["metric"], gain["lower"])
    steps = [("baseline", 0.0, gain["start"], MUTED)]
    steps += [(f"h{c['hypothesis']}", c["before"], c["after"], _GAINED) for c in gain["accepted"][-STAGES:]]
    steps.append(("now", 0.0, gain["now"], marks.AFTER))
    for place, (_, low, high, colour) in enumerate(steps):
        _step(axes, place, low, high, colour, metric)
    _goals(axes, gain)
    axes.set_ylim(0, 102 if metric.points else 1.1 * axes.get_ylim()[1])
    axes.set_xlim(-0.6, len(steps) - 0.4)
    axes.set_xticks(range(len(steps)), [name for name, *_ in steps], fontsize=8)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(metric, value)))
    axes.set_ylabel(name if metric.points else metric.name)
    axes.set_title("accepted changes, each on the baseline of its time", loc="left", fontsize=9)
    plain(axes)


def _step(axes: Any, place: int, low: float | None, high: float | None, colour: str, metric: Metric) -> None:
    """A bar from `low` to `high`, which is written at its end, wherever that lies."""
    if low is None or high is None:
        axes.annotate("not\nmeasured", (place, 0), ha="center", va="bottom", fontsize=8, color=MUTED)
        return
    axes.bar(place, high - low, bottom=low, color=colour, width=0.62)
    beyond = "bottom" if high >= low else "top"
    # What is written stays readable upon the line of a target.
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    figure = numbers.figure(metric, high)
    axes.annotate(figure, (place, high), ha="center", va=beyond, fontsize=8, bbox=behind)


def _tick(metric: Metric, value: float) -> str:
    return f"{value:g}%" if metric.points else numbers.figure(metric, value)


def _goals(axes: Any, gain: Mapping[str, Any]) -> None:
    """Lines for target and reference, named behind their ends: apart, however close they are."""
    known = sorted((gain[key], key) for key in ("target", "reference") if gain[key] is not None)
    for (value, key), beside in zip(known, ("top", "bottom") if len(known) > 1 else ("center",), strict=True):
        axes.axhline(value, color=marks.INK, ls=_LEVELS[key].style, lw=1.2)
        at = {"xy": (1.0, value), "xycoords": ("axes fraction", "data")}
        axes.annotate(f" {key}", **at, va=beside, fontsize=8)
