"""A trace as bars: what each device did, what the host did while it idled, which operators took longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudebug.core.inside.sections.names import short
from gpudebug.core.statistics import numbers
from gpudebug.edges.charts.canvas import MUTED, figure, plain, png

_DEVICES, _ROWS, _NAME = 16, 12, 40
# Fewer bars than this are no thicker.
_LEAST = 6
_PARTS = (("compute_s", "#4c78a8"), ("memory_s", "#f58518"), ("communication_s", "#e45756"))


def trace(answer: dict[str, Any]) -> bytes:
    """Devices and causes of idle time if the trace has devices; operators always."""
    devices = answer["devices"][:_DEVICES]
    causes = [
        (c["cause"].replace("_", " "), c["seconds"]) for c in (answer["gaps"] or {}).get("by_cause", ())
    ]
    operators = [(o["name"], o["self_s"]) for o in answer["operators"][:_ROWS]]
    rows = max(len(devices), min(len(causes), _ROWS), len(operators), _LEAST)
    with figure(15 if devices else 8, 1.4 + 0.3 * rows) as made:
        made.suptitle(f"{short(answer['file'], 90)}, {numbers.number(answer['span_s'], 's')}", fontsize=11)
        panels = made.subplots(1, 3 if devices else 1, squeeze=False)[0]
        if devices:
            _occupied(panels[0], devices)
            _ranked(panels[1], causes[:_ROWS], "idle time by what the host did, s")
        _ranked(panels[-1], operators, "operators on the host, own time in s")
        return png(made)


def _occupied(axes: Any, devices: Sequence[dict[str, Any]]) -> None:
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


def _scaled(device: dict[str, Any], key: str) -> float:
    together = sum(device[part] or 0.0 for part, _ in _PARTS)
    return float((device["busy_share"] or 0.0) * (device[key] or 0.0) / together) if together else 0.0


def _ranked(axes: Any, rows: Sequence[tuple[str, float]], title: str) -> None:
    values = [max(seconds, 0.0) for _, seconds in rows]
    axes.barh(range(len(rows)), values, color="#4c78a8")
    for place, value in enumerate(values):
        axes.text(value, place, f" {numbers.number(value, 's')}", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [short(name, _NAME) for name, _ in rows])
    axes.set_ylim(max(len(rows), _LEAST) - 0.4, -0.6)
    axes.set_xlim(0, 1.25 * max(values, default=1.0) or 1.0)
    axes.set_title(title if rows else f"{title}: none")
    plain(axes)
