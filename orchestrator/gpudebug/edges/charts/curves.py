"""What changes over a run: the loss over steps, utilisation and memory over time."""

from __future__ import annotations

from typing import Any

from gpudebug.core.inside.sections.names import short
from gpudebug.core.statistics.across import name
from gpudebug.edges.charts.canvas import MUTED, figure, plain, png

_TITLE = 100


def training_log(answer: dict[str, Any]) -> bytes:
    """`series` of the answer holds [step, value] of the loss and [step, seconds] of single steps.

    Unless they are `stepped`, some are numbered as they were printed.
    """
    series, loss = answer["series"], answer["loss"]
    timed = bool(series["step_times"])
    with figure(11, 6.4 if timed else 4.2) as made:
        made.suptitle(short(answer["file"], _TITLE), fontsize=11)
        panels = made.subplots(2 if timed else 1, 1, sharex=series["stepped"], squeeze=False)[:, 0]
        known = [[step, value] for step, value in series["loss"] if value is not None]
        gone = [step for step, value in series["loss"] if value is None]
        panels[0].plot(*_columns(known), "o-", ms=3, lw=1, color="#4c78a8")
        for step in gone[:200]:
            panels[0].axvline(step, color="#e45756", lw=0.6)
        panels[0].set_ylabel(short(loss["name"] or "loss", 40))
        text = f"{loss['trend']}, {loss['points']} points" + (" (red: not a number)" if gone else "")
        panels[0].set_title(text)
        if timed:
            panels[1].plot(*_columns(series["step_times"]), ".", ms=3, color="#54a24b")
            panels[1].set_ylabel("s a step")
            panels[1].set_ylim(bottom=0)
        panels[-1].set_xlabel("step" if series["stepped"] else "step, or number of the printed value")
        for axes in panels:
            plain(axes)
        return png(made)


def samples(answer: dict[str, Any]) -> bytes:
    """`timeline` of the answer holds, a device, [elapsed, utilisation, MB used]; None is unknown."""
    devices, window = answer["timeline"], answer["window"]
    filled = any(used is not None for d in devices for _, _, used in d["points"])
    with figure(11, 6.0 if filled else 4.0) as made:
        made.suptitle(short(answer["file"], _TITLE), fontsize=11)
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
            if window:
                axes.axvspan(
                    window["start_s"], window["end_s"], color=MUTED, alpha=0.15, lw=0, label="window"
                )
        if devices:
            panels[0].legend(fontsize=8, frameon=False, loc="lower right", ncols=4)
        panels[-1].set_xlabel("s since launch")
        return png(made)


def _columns(points: list[Any]) -> tuple[list[float], list[float]]:
    return [p[0] for p in points], [p[1] for p in points]
