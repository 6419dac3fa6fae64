"""Sections as bars: time, time a call, memory, and what share each category has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gpudebug.core.inside.sections.names import short
from gpudebug.core.statistics import numbers
from gpudebug.edges.charts.canvas import MUTED, figure, plain, png

ROWS = 40
_NAME = 44
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d", "#72b7b2", "#eeca3b")
_BELOW = 0.35
_PEAKS = (("mem_peak_mb", "host", "#4c78a8"), ("gpu_peak_mb", "GPU", "#e45756"))


def sections(answer: dict[str, Any]) -> bytes:
    """Return the `ROWS` sections with the most time as rows of three panels, the categories below them."""
    rows = answer["sections"][:ROWS]
    colours = _colours([c["name"] for c in answer["categories"]])
    remembered = any(r[key] is not None for r in rows for key, _, _ in _PEAKS)
    widths = [5.0, 2.4, 2.4] if remembered else [5.0, 2.6]
    body = max(1.6, 0.27 * len(rows))
    with figure(14, body + (2.0 if colours else 1.2)) as made:
        made.suptitle(_title(answer, len(rows)), fontsize=11)
        grid = made.add_gridspec(2 if colours else 1, 1, height_ratios=[body, 0.45] if colours else [1])
        panels: Any = grid[0].subgridspec(1, len(widths), width_ratios=widths).subplots(sharey=True)
        _time(panels[0], rows, colours)
        _mean(panels[1], rows)
        if remembered:
            _memory(panels[2], rows)
        if colours:
            _categories(made.add_subplot(grid[1]), answer["categories"], colours)
        return png(made)


def _title(answer: dict[str, Any], shown: int) -> str:
    parts = [short(answer["file"], 90), f"{numbers.number(answer['profiled_s'], 's')} profiled"]
    if answer["iterations_per_s"] is not None:
        parts.append(numbers.number(answer["iterations_per_s"], "iterations/s"))
    left = len(answer["sections"]) - shown
    if left > 0:
        rest = sum(r["self_s"] for r in answer["sections"][shown:])
        parts.append(f"{left} more sections ({numbers.number(rest, 's')} of their own) not drawn")
    if not shown:
        parts.append("no section was timed")
    return ", ".join(parts)


def _colours(categories: Sequence[str]) -> dict[str | None, str]:
    """Return a colour a category; grey for what has none, and where there are more than colours."""
    known = [c for c in categories if not c.startswith("(")]
    colours: dict[str | None, str] = dict(zip(known, _COLOURS, strict=False))
    return {name: colours.get(name, MUTED) for name in categories}


def _time(axes: Any, rows: Sequence[dict[str, Any]], colours: dict[str | None, str]) -> None:
    places = range(len(rows))
    painted = [colours.get(r["category"], MUTED if colours else _COLOURS[0]) for r in rows]
    own = [min(r["self_s"], r["total_s"]) for r in rows]
    below = [r["total_s"] - o for r, o in zip(rows, own, strict=True)]
    axes.barh(places, own, color=painted)
    axes.barh(places, below, left=own, color=painted, alpha=_BELOW)
    for place, row in zip(places, rows, strict=True):
        text = f" {numbers.number(row['total_s'], 's')}, {100 * row['share']:.1f}%"
        axes.text(row["total_s"], place, text, va="center", fontsize=8)
    axes.set_yticks(list(places), [short(r["name"], _NAME) for r in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.22 * max((r["total_s"] for r in rows), default=1.0) or 1.0)
    axes.set_title("total time in s (pale: in sections below)")
    plain(axes)


def _mean(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    known = [(place, r) for place, r in enumerate(rows) if r["mean_s"] > 0]
    axes.set_title("ms a call (least, mean, most) and calls")
    plain(axes)
    if not known:
        axes.set_xticks([])
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    for place, r in known:
        least = r["min_s"] or r["mean_s"]
        axes.plot([1000 * least, 1000 * max(r["max_s"], least)], [place, place], color=MUTED, lw=1)
    axes.plot([1000 * r["mean_s"] for _, r in known], [place for place, _ in known], "o", color="black", ms=4)
    most = 1000 * max(max(r["max_s"], r["mean_s"]) for _, r in known)
    least = 1000 * min(r["min_s"] or r["mean_s"] for _, r in known)
    # Room at the right for the counts.
    axes.set_xlim(least / 1.5, most * max(3.0, (most / least) ** 0.45))
    for place, r in known:
        at = 1000 * max(r["max_s"], r["mean_s"])
        axes.text(at, place, f"  {_ms(r['mean_s'])} x {r['calls']:,}", va="center", fontsize=8)


def _ms(seconds: float) -> str:
    return numbers.number(1000 * seconds)


def _memory(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    most = max(r[key] or 0.0 for r in rows for key, _, _ in _PEAKS) or 1.0
    # Room at the right for the legend.
    axes.set_xlim(0, 1.4 * most)
    for i, (key, label, colour) in enumerate(_PEAKS):
        known = [(place, r[key]) for place, r in enumerate(rows) if r[key] is not None]
        if not known:
            continue
        at = [place + 0.2 * (2 * i - 1) for place, _ in known]
        axes.barh(at, [value for _, value in known], height=0.38, color=colour, label=label)
    axes.set_title("memory peak in MB")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    plain(axes)


def _categories(axes: Any, categories: Sequence[dict[str, Any]], colours: dict[str | None, str]) -> None:
    left = 0.0
    for category in categories:
        text = f"{100 * category['share']:.1f}% {short(category['name'], 24)}"
        axes.barh(0, category["share"], left=left, color=colours[category["name"]], label=text)
        left += category["share"]
    axes.set_xlim(0, 1)
    axes.set_axis_off()
    axes.set_title("own time by category")
    columns = min(6, len(categories))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns, fontsize=8, frameon=False)
