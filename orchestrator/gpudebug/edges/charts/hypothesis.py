"""One hypothesis in one picture: the device before and after its change, loss, times of steps, gates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.ticker import FuncFormatter, NullLocator

from gpudebug.core.campaign import overview
from gpudebug.core.inside import step_histogram
from gpudebug.core.inside.sections.names import short
from gpudebug.core.statistics import numbers
from gpudebug.edges.charts import marks, timeline
from gpudebug.edges.charts.canvas import MUTED, figure, padded, plain, png

WIDTH = 12
_HEAD, _OVER_TIME, _CURVES, _TEXT_LINE, _TEXT_AROUND = 1.2, 3.0, 2.6, 0.2, 0.3
_TITLE, _LINE, _FIGURES, _CHANGE = 84, 165, 120, 140
_VALUE, _THRESHOLD, _NOTE = 56, 70, 120
_NAME_AT, _RESULT_AT, _VALUE_AT, _THRESHOLD_AT = 0.015, 0.15, 0.21, 0.57
_KEY: Any = {"fontsize": 9, "frameon": False}
_TICKS = 5
# The share of a run from which on there is room to name its warm-up.
_WARM = 0.08
_TOP, _STRIP = 117.0, {"before": 113.0, "after": 106.0}

Data = Mapping[str, Any]
Hypothesis = Mapping[str, Any]


class DrawnSide(NamedTuple):
    """One side of a trial: all its runs, and the one in their middle, which is drawn in full."""

    name: str
    colour: str
    width: float
    runs: Sequence[Any]
    shown: Any


def hypothesis(data: Data, number: int) -> bytes:
    """The picture of hypothesis `number` of a report's data; a missing measurement is named in its place."""
    h = next(h for h in data["hypotheses"] if h["number"] == number)
    sides = _sides(data, h)
    lines = _gate_lines(h["gates"])
    heights = [_HEAD, _OVER_TIME, _CURVES] if sides else [_HEAD]
    if lines:
        heights.append(_TEXT_AROUND + _TEXT_LINE * len(lines))
    with figure(WIDTH, sum(heights)) as made:
        padded(made)
        parts = made.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        _head(parts[0], data, h, sides)
        if sides:
            _over_time(parts[1].subplots(), sides, overview.utilisation(data))
            left, right = parts[2].subplots(1, 2)
            _losses(left, sides)
            _step_times(right, sides)
        if lines:
            _gates(parts[-1], lines)
        return png(made)


def _sides(data: Data, h: Hypothesis) -> list[DrawnSide]:
    """Those that any run can be drawn of."""
    # The broad line stays in sight below one that lies upon it, as a loss does that did not change.
    before, after = ("before", marks.BEFORE, 2.6), ("after", marks.AFTER, 1.1)
    values = ((*before, h["baseline_runs"]), (*after, h["trial_runs"]))
    runs = data["runs"]
    sides = [
        DrawnSide(name, colour, width, [runs[n] for n in names if n in runs], timeline.typical(names, runs))
        for name, colour, width, names in values
    ]
    return [side for side in sides if side.shown is not None]


def _head(part: Any, data: Data, h: Hypothesis, sides: Sequence[DrawnSide]) -> None:
    def say(y: float, text: str, **style: Any) -> None:
        part.text(style.pop("x", 0.015), y, text, va="top", **{"color": marks.INK, "fontsize": 10, **style})

    colour = marks.of_status(h["status"]).colour
    say(0.94, short(f"Hypothesis {h['number']}: {h['title']}", _TITLE), fontsize=14, fontweight="bold")
    accepted = ", accepted" if h["accepted"] is not None else ""
    say(0.66, f"{h['status']}{accepted}", color=colour, fontweight="bold")
    say(0.66, short(_figures(h), _FIGURES), x=0.18)
    say(0.43, short(h["intervention"] or "no change is written", _CHANGE), fontsize=9, family="monospace")
    about = f"{data['status']['campaign']}; {overview.device(data)}; gpudebug {data['gpudebug']}"
    if not sides:
        about = f"No run of it can be drawn; {about}"
    say(0.20, short(about, _LINE), fontsize=8.5, color=MUTED)


def _figures(h: Hypothesis) -> str:
    """What the trial found, else why nothing."""
    if not overview.tested([h]):
        return "not tested yet"
    if overview.effect(h) is None:
        return str(h["why"] or overview.effect_text(h))
    figures = h["figures"]
    sides = [figures[key] for key in ("gpu util before", "gpu util after") if key in figures]
    change = figures.get("metric") or f"gpu_util {' to '.join(sides)}"
    texts = [f"{change}: {overview.effect_text(h)}"]
    if h["throughput_ratio"] is not None:
        texts.append(f"throughput {h['throughput_ratio']:.2f}x")
    if "loss" in figures:
        texts.append(f"loss {figures['loss']}")
    return ", ".join(texts)


def _over_time(axes: Any, sides: Sequence[DrawnSide], name: str) -> None:
    """Both runs over each other; above them the windows that are counted, before them the warm-up."""
    for side in sides:
        run, window = side.shown, side.shown["window"]
        timeline.draw(axes, run, side.colour, label=_named(side))
        if window:
            at, start, stop = _STRIP[side.name], window["start_s"], window["end_s"]
            axes.plot([start, stop], [at, at], color=side.colour, lw=4, solid_capstyle="butt")
            if start > _WARM * timeline.end(run):
                axes.text(start / 2, at, "warm-up", color=side.colour, ha="center", va="center", fontsize=8)
            axes.axvline(start, ymax=at / _TOP, color=side.colour, lw=0.9, ls=(0, (4, 3)))
    timeline.frame(axes, _TOP)
    axes.set_ylabel(f"{name} in %")
    axes.set_xlabel("s since launch (bars above: the windows that are counted)")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, **_KEY)
    plain(axes)


def _named(side: DrawnSide) -> str:
    """`before: 20.1%, run 0001-baseline-workload, one of 2`."""
    run, many = side.shown, len(side.runs)
    ended = run["outcome"] if run["utilisation"] is None else numbers.percent(run["utilisation"])
    text = f"{side.name}: {ended}, run {short(run['name'], 40)}"
    return f"{text}, one of {many}" if many > 1 else text


def _losses(axes: Any, sides: Sequence[DrawnSide]) -> None:
    """Every run's loss, pale, and that of the run which is drawn above."""
    drawn = False
    for side in sides:
        for run in side.runs:
            known = [(at, value) for at, value in run["loss_points"] if value is not None]
            if not known:
                continue
            drawn, shown = True, run is side.shown
            label = f"{side.name}: {run['loss']['trend']}" if shown else None
            marker = "o" if len(known) < 30 else ""
            style = {"lw": side.width, "marker": marker, "ms": 2.5} if shown else {"lw": 0.7, "alpha": 0.35}
            axes.plot(*zip(*known, strict=True), color=side.colour, label=label, **style)
    _entitled(axes, drawn, "loss", "no loss was found in the logs")
    if not drawn:
        return
    stepped = all(run["loss_by"] == "step" for side in sides for run in side.runs if run["loss_points"])
    axes.set_xlabel("step" if stepped else "number of the printed value")


def _step_times(axes: Any, sides: Sequence[DrawnSide]) -> None:
    """Shares of steps by their time; the bars have equal widths on the log scale."""
    drawn = False
    for side in sides:
        bins = (side.shown["step_times"] or {"bins": []})["bins"]
        middle, total = step_histogram.quantile(bins, 0.5), sum(count for _, _, count in bins)
        if middle is None:
            continue
        drawn = True
        lows, widths = [low for low, _, _ in bins], [high - low for low, high, _ in bins]
        heights = [count / total / math.log2(high / low) for low, high, count in bins]
        text = f"{side.name}: p50 {_ms(middle)}"
        axes.bar(lows, heights, widths, align="edge", color=side.colour, alpha=0.55, lw=0, label=text)
    _entitled(axes, drawn, "time of a step", "neither the log nor the probe reported step times")
    if drawn:
        axes.set_xscale("log")
        axes.set_xticks(_ticks(*axes.get_xlim()))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _ms(value)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("share of steps")
    axes.set_yticks([])


def _entitled(axes: Any, drawn: bool, title: str, absent: str) -> None:
    axes.set_title(title, loc="left")
    plain(axes)
    if drawn:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2, **_KEY)
        return
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, absent, transform=axes.transAxes, ha="center", va="center", color=MUTED)


def _ticks(low: float, high: float) -> list[float]:
    """A few places at equal distances on the log scale, as round as two digits are."""
    inner = [low * (high / low) ** (i / (_TICKS + 1)) for i in range(1, _TICKS + 1)]
    return sorted({float(f"{value:.2g}") for value in inner})


def _ms(seconds: float) -> str:
    return numbers.number(seconds, "s") if seconds >= 1 else numbers.number(1000 * seconds, "ms")


class Text(NamedTuple):
    """One piece of a line of text; `x` as a share of the width."""

    x: float
    said: str
    colour: str = marks.INK


def _gate_lines(gates: Sequence[Mapping[str, Any]]) -> list[list[Text]]:
    """A line a gate, below it the note of one that does not pass; those that were skipped in one line."""
    lines = []
    for gate in gates:
        if gate["result"] != "skipped":
            lines.append(_gate_line(gate))
            if gate["note"] and gate["result"] != "pass":
                lines.append([Text(_VALUE_AT, short(gate["note"], _NOTE), MUTED)])
    skipped = ", ".join(_gate_name(gate) for gate in gates if gate["result"] == "skipped")
    if skipped:
        lines.append([Text(_NAME_AT, "skipped", MUTED), Text(_RESULT_AT, short(skipped, _NOTE), MUTED)])
    if not lines:
        return []
    heading = [(_NAME_AT, "gates"), (_VALUE_AT, "measured"), (_THRESHOLD_AT, "needed")]
    return [[Text(*pair) for pair in heading], *lines]


def _gate_line(gate: Mapping[str, Any]) -> list[Text]:
    return [
        Text(_NAME_AT, _gate_name(gate)),
        Text(_RESULT_AT, str(gate["result"]), marks.of_result(gate["result"])),
        Text(_VALUE_AT, short(gate["value"] or numbers.UNKNOWN, _VALUE)),
        Text(_THRESHOLD_AT, short(gate["threshold"], _THRESHOLD), MUTED),
    ]


def _gate_name(gate: Mapping[str, Any]) -> str:
    return short(gate["name"].replace("_", " "), 24)


def _gates(part: Any, lines: Sequence[Sequence[Text]]) -> None:
    whole = _TEXT_AROUND + _TEXT_LINE * len(lines)
    for place, pieces in enumerate(lines):
        y = 1 - (0.1 + _TEXT_LINE * place) / whole
        for piece in pieces:
            weight = "bold" if place == 0 else "normal"
            part.text(piece.x, y, piece.said, va="top", fontsize=9, color=piece.colour, fontweight=weight)
