"""The utilisation of a run over time: a line; of several devices their mean in the band that they fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Run = Mapping[str, Any]
_THIN, _PALE = 1.1, 0.35


class Series(NamedTuple):
    """Seconds since launch, and at each the mean, the least and the largest utilisation of the devices that
    tell one; NaN if none does."""

    times: Any
    mean: Any
    least: Any
    most: Any


def series(run: Run) -> Series | None:
    """What is known of a run: its timeline, else the few means that its evidence keeps; None of nothing."""
    lines = [_line(device["points"]) for device in run["timeline"]]
    known = [line for line in lines if line.size and not np.isnan(line[:, 1]).all()]
    if not known:
        return _coarse(run)
    times = np.unique(np.concatenate([line[:, 0] for line in known]))
    outside = {"left": np.nan, "right": np.nan}
    values = np.stack([np.interp(times, line[:, 0], line[:, 1], **outside) for line in known])
    told = ~np.isnan(values)
    none = ~told.any(axis=0)
    mean = np.where(told, values, 0.0).sum(axis=0) / np.maximum(told.sum(axis=0), 1)
    least, most = (np.where(told, values, edge) for edge in (np.inf, -np.inf))
    found = (mean, least.min(axis=0), most.max(axis=0))
    return Series(times, *(np.where(none, np.nan, column) for column in found))


def _line(points: Sequence[Sequence[float | None]]) -> Any:
    """Rows of time and utilisation, NaN for unknown."""
    return np.asarray([p[:2] for p in points], dtype=float).reshape(-1, 2)


def _coarse(run: Run) -> Series | None:
    """Means over equal spans of the run, each at the middle of its span."""
    spark, lasted = run["spark"], run["duration_s"]
    if not spark or not lasted:
        return None
    values = np.asarray(spark, dtype=float)
    times = (np.arange(len(values)) + 0.5) * lasted / len(values)
    return Series(times, values, values, values)


def typical(names: Sequence[str], runs: Mapping[str, Run]) -> Run | None:
    """Of the runs so named the one in the middle by utilisation, of those that can be drawn."""
    drawn = [runs[name] for name in names if name in runs and series(runs[name]) is not None]
    measured = [run for run in drawn if run["utilisation"] is not None]
    if measured:
        measured.sort(key=lambda run: float(run["utilisation"]))
        return measured[(len(measured) - 1) // 2]
    return drawn[-1] if drawn else None


def draw(axes: Any, run: Run, colour: str, *, label: str | None = None, filled: bool = False) -> None:
    """The run's line, pale outside its window; `filled` colours what is below it."""
    found = series(run)
    if found is None:
        return
    window, counted = run["window"], np.ones(len(found.times), dtype=bool)
    if window:
        counted = (found.times >= window["start_s"]) & (found.times <= window["end_s"])
        axes.plot(found.times, found.mean, color=colour, lw=_THIN, alpha=_PALE)
    axes.plot(found.times, np.where(counted, found.mean, np.nan), color=colour, lw=_THIN, label=label)
    if filled:
        axes.fill_between(found.times, 0, found.mean, color=colour, alpha=0.12, lw=0)
    if (found.most > found.least).any():
        axes.fill_between(found.times, found.least, found.most, color=colour, alpha=0.2, lw=0)


def end(run: Run) -> float:
    """Where the run's line ends, in seconds since launch."""
    found = series(run)
    return 0.0 if found is None else float(found.times[-1])


def frame(axes: Any, top: float = 102.0) -> None:
    """Axes for lines of utilisation."""
    axes.set_ylim(0, top)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_xlim(left=0)
