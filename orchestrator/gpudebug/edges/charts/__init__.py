"""Pictures of what `analyze` finds, as PNG bytes, drawn without a display.

They need matplotlib, the extra `charts`.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import name
from gpudebug.core.words import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpudebug.core.answers.analyze import SamplesAnswer, TraceAnswer
    from gpudebug.core.answers.log import LogAnswer
    from gpudebug.core.answers.sections import CategoryShare, ScoredSection, SectionsAnswer


DPI = 110
MUTED = "#888888"
# Names come from programs: a dollar sign in one is no formula. Whatever matplotlibrc says is left aside.
_STYLE: Any = {"text.parse_math": False, "text.usetex": False, "font.size": 9, "axes.titlesize": 10}


def check() -> None:
    """GpudebugError if nothing can be drawn here."""
    try:
        import matplotlib
    except ImportError:
        raise GpudebugError(
            "charts need matplotlib, which is not installed", next="pip install 'gpudebug[charts]'"
        ) from None


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """A figure of so many inches, to be drawn and saved inside the block."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE), warnings.catch_warnings():
        # A font that lacks a character shows a box in its place.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        made = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(made)
        yield made


def png(made: Figure) -> bytes:
    """Return the picture; inside the block of `figure`."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="png", metadata={"Software": "gpudebug"})
    return buffer.getvalue()


def plain(axes: Any) -> None:
    """Axes without a frame at the right and at the top."""
    axes.spines[["right", "top"]].set_visible(False)


_TITLE = 100


def training_log(answer: LogAnswer, series: Mapping[str, Any]) -> bytes:
    """`series` are [step, value] of the loss, [step, seconds] of single steps and [work done, reward].

    Unless they are `stepped`, some are numbered as they were printed.
    """
    loss, reward = answer.loss, answer.reward
    timed, rewarded = bool(series["step_times"]), bool(series.get("reward"))
    count = 1 + timed + rewarded
    by = "step" if series["stepped"] else "step, or number of the printed value"
    with figure(11, 2 + 2.2 * count) as made:
        made.suptitle(short(answer.file, _TITLE), fontsize=11)
        panels = list(made.subplots(count, 1, squeeze=False)[:, 0])
        known = [[step, value] for step, value in series["loss"] if value is not None]
        gone = [step for step, value in series["loss"] if value is None]
        panels[0].plot(*_columns(known), "o-", ms=3, lw=1, color="#4c78a8")
        for step in gone[:200]:
            panels[0].axvline(step, color="#e45756", lw=0.6)
        panels[0].set_ylabel(short(loss.name or "loss", 40))
        text = f"{loss.trend}, {loss.points} points" + (" (red: not a number)" if gone else "")
        panels[0].set_title(text)
        panels[0].set_xlabel(by)
        if rewarded and reward is not None:
            panels[1].plot(*_columns(series["reward"]), "o-", ms=3, lw=1, color="#f58518")
            panels[1].set_ylabel(short(reward.name, 40))
            panels[1].set_title(f"{reward.trend}, {reward.points} points")
            panels[1].set_xlabel(short(reward.over or "", 40))
        if timed:
            panels[-1].plot(*_columns(series["step_times"]), ".", ms=3, color="#54a24b")
            panels[-1].set_ylabel("s a step")
            panels[-1].set_ylim(bottom=0)
            panels[-1].set_xlabel(by)
        for axes in panels:
            plain(axes)
        return png(made)


def samples(answer: SamplesAnswer, devices: Sequence[Mapping[str, Any]]) -> bytes:
    """`devices` have `points` of [elapsed, utilisation, MB used]; None is unknown."""
    filled = any(used is not None for d in devices for _, _, used in d["points"])
    with figure(11, 6.0 if filled else 4.0) as made:
        made.suptitle(short(answer.file, _TITLE), fontsize=11)
        panels = made.subplots(2 if filled else 1, 1, sharex=True, squeeze=False)[:, 0]
        for device in devices:
            label = name(device)
            points = device["points"]
            panels[0].plot(*_columns([(t, u) for t, u, _ in points if u is not None]), lw=1, label=label)
            if filled:
                panels[1].plot(*_columns([(t, m) for t, _, m in points if m is not None]), lw=1, label=label)
        panels[0].set_ylim(0, 102)
        panels[0].set_ylabel("utilisation in %")
        if filled:
            panels[1].set_ylabel("memory used in MB")
            panels[1].set_ylim(bottom=0)
        for axes in panels:
            plain(axes)
            if window := answer.window:
                axes.axvspan(window.start_s, window.end_s, color=MUTED, alpha=0.15, lw=0, label="window")
        if devices:
            panels[0].legend(fontsize=8, frameon=False, loc="lower right", ncols=4)
        panels[-1].set_xlabel("s since launch")
        return png(made)


def _columns(points: list[Any]) -> tuple[list[float], list[float]]:
    return [p[0] for p in points], [p[1] for p in points]


_DEVICES, _ROWS, _OPERATOR = 16, 12, 40
# Fewer bars than this are no thicker.
_LEAST = 6
_PARTS = (("compute_s", "#4c78a8"), ("memory_s", "#f58518"), ("communication_s", "#e45756"))


def trace(answer: TraceAnswer) -> bytes:
    """Devices and causes of idle time if the trace has devices; operators always."""
    devices = answer.devices[:_DEVICES]
    causes = [(c["cause"].replace("_", " "), c["seconds"]) for c in (answer.gaps or {}).get("by_cause", ())]
    operators = [(o["name"], o["self_s"]) for o in answer.operators[:_ROWS]]
    rows = max(len(devices), min(len(causes), _ROWS), len(operators), _LEAST)
    with figure(15 if devices else 8, 1.4 + 0.3 * rows) as made:
        made.suptitle(f"{short(answer.file, 90)}, {numbers.number(answer.span_s, 's')}", fontsize=11)
        panels = made.subplots(1, 3 if devices else 1, squeeze=False)[0]
        if devices:
            _occupied(panels[0], devices)
            _ranked(panels[1], causes[:_ROWS], "idle time by what the host did, s")
        _ranked(panels[-1], operators, "operators on the host, own time in s")
        return png(made)


def _occupied(axes: Any, devices: Sequence[Mapping[str, Any]]) -> None:
    """A bar a device; kinds of work that overlap are scaled to the time in which any ran."""
    left = [0.0] * len(devices)
    for key, colour in _PARTS:
        widths = [_scaled(d, key) for d in devices]
        axes.barh(range(len(devices)), widths, left=left, color=colour, label=key.removesuffix("_s"))
        left = [at + width for at, width in zip(left, widths, strict=True)]
    idle = [max(1 - at, 0.0) for at in left]
    axes.barh(range(len(devices)), idle, left=left, color=MUTED, alpha=0.35, label="idle")
    names = [f"{d['device']}: {_busy(d['busy_share'])} busy" for d in devices]
    axes.set_yticks(range(len(devices)), names)
    axes.set_ylim(max(len(devices), _LEAST) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_title("share of each device's time")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=4, fontsize=8, frameon=False)
    plain(axes)


def _busy(share: float | None) -> str:
    return numbers.percent(None if share is None else 100 * share)


def _scaled(device: Mapping[str, Any], key: str) -> float:
    together = sum(device[part] or 0.0 for part, _ in _PARTS)
    return float((device["busy_share"] or 0.0) * (device[key] or 0.0) / together) if together else 0.0


def _ranked(axes: Any, rows: Sequence[tuple[str, float]], title: str) -> None:
    values = [max(seconds, 0.0) for _, seconds in rows]
    axes.barh(range(len(rows)), values, color="#4c78a8")
    for place, value in enumerate(values):
        axes.text(value, place, f" {numbers.number(value, 's')}", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [short(name, _OPERATOR) for name, _ in rows])
    axes.set_ylim(max(len(rows), _LEAST) - 0.4, -0.6)
    axes.set_xlim(0, 1.25 * max(values, default=1.0) or 1.0)
    axes.set_title(title if rows else f"{title}: none")
    plain(axes)


ROWS = 40
_NAME = 44
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d", "#72b7b2", "#eeca3b")
_BELOW = 0.35
_PEAKS = (("mem_peak_mb", "host", "#4c78a8"), ("gpu_peak_mb", "GPU", "#e45756"))


def sections(answer: SectionsAnswer) -> bytes:
    """Return the `ROWS` sections with the most time as rows of three panels, the categories below them."""
    rows = answer.sections[:ROWS]
    colours = _colours([c.name for c in answer.categories])
    remembered = any(getattr(r, key) is not None for r in rows for key, _, _ in _PEAKS)
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
            _categories(made.add_subplot(grid[1]), answer.categories, colours)
        return png(made)


def _title(answer: SectionsAnswer, shown: int) -> str:
    parts = [short(answer.file, 90), f"{numbers.number(answer.profiled_s, 's')} profiled"]
    if answer.iterations_per_s is not None:
        parts.append(numbers.number(answer.iterations_per_s, "iterations/s"))
    left = len(answer.sections) - shown
    if left > 0:
        rest = sum(r.self_s for r in answer.sections[shown:])
        parts.append(f"{left} more sections ({numbers.number(rest, 's')} of their own) not drawn")
    if not shown:
        parts.append("no section was timed")
    return ", ".join(parts)


def _colours(categories: Sequence[str]) -> dict[str | None, str]:
    """Return a colour a category; grey for what has none, and where there are more than colours."""
    known = [c for c in categories if not c.startswith("(")]
    colours: dict[str | None, str] = dict(zip(known, _COLOURS, strict=False))
    return {name: colours.get(name, MUTED) for name in categories}


def _time(axes: Any, rows: Sequence[ScoredSection], colours: dict[str | None, str]) -> None:
    places = range(len(rows))
    painted = [colours.get(r.category, MUTED if colours else _COLOURS[0]) for r in rows]
    own = [min(r.self_s, r.total_s) for r in rows]
    below = [r.total_s - o for r, o in zip(rows, own, strict=True)]
    axes.barh(places, own, color=painted)
    axes.barh(places, below, left=own, color=painted, alpha=_BELOW)
    for place, row in zip(places, rows, strict=True):
        text = f" {numbers.number(row.total_s, 's')}, {100 * row.share:.1f}%"
        axes.text(row.total_s, place, text, va="center", fontsize=8)
    axes.set_yticks(list(places), [short(r.name, _NAME) for r in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.22 * max((r.total_s for r in rows), default=1.0) or 1.0)
    axes.set_title("total time in s (pale: in sections below)")
    plain(axes)


def _mean(axes: Any, rows: Sequence[ScoredSection]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    known = [(place, r) for place, r in enumerate(rows) if r.mean_s > 0]
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
        least = r.min_s or r.mean_s
        axes.plot([1000 * least, 1000 * max(r.max_s, least)], [place, place], color=MUTED, lw=1)
    axes.plot([1000 * r.mean_s for _, r in known], [place for place, _ in known], "o", color="black", ms=4)
    most = 1000 * max(max(r.max_s, r.mean_s) for _, r in known)
    least = 1000 * min(r.min_s or r.mean_s for _, r in known)
    # Room at the right for the counts.
    axes.set_xlim(least / 1.5, most * max(3.0, (most / least) ** 0.45))
    for place, r in known:
        at = 1000 * max(r.max_s, r.mean_s)
        axes.text(at, place, f"  {_ms(r.mean_s)} x {r.calls:,}", va="center", fontsize=8)


def _ms(seconds: float) -> str:
    return numbers.number(1000 * seconds)


def _memory(axes: Any, rows: Sequence[ScoredSection]) -> None:
    most = max(getattr(r, key) or 0.0 for r in rows for key, _, _ in _PEAKS) or 1.0
    # Room at the right for the legend.
    axes.set_xlim(0, 1.4 * most)
    for i, (key, label, colour) in enumerate(_PEAKS):
        known = [(place, getattr(r, key)) for place, r in enumerate(rows) if getattr(r, key) is not None]
        if not known:
            continue
        at = [place + 0.2 * (2 * i - 1) for place, _ in known]
        axes.barh(at, [value for _, value in known], height=0.38, color=colour, label=label)
    axes.set_title("memory peak in MB")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    plain(axes)


def _categories(axes: Any, categories: Sequence[CategoryShare], colours: dict[str | None, str]) -> None:
    left = 0.0
    for category in categories:
        text = f"{100 * category.share:.1f}% {short(category.name, 24)}"
        axes.barh(0, category.share, left=left, color=colours[category.name], label=text)
        left += category.share
    axes.set_xlim(0, 1)
    axes.set_axis_off()
    axes.set_title("own time by category")
    columns = min(6, len(categories))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns, fontsize=8, frameon=False)
