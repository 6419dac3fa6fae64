"""What the first contact with a GPU comes to, from its recordings alone: nothing here starts anything."""

from __future__ import annotations

import calendar
import csv
import gzip
import io
import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpudebug.core.statistics.assumed import TABLE

EXPECTED = {
    "none": set[str](),
    "loader": {"dl-no-workers"},
    "sync": {"sync-item", "sync-hidden"},
    "h2d": {"h2d-pageable", "h2d-per-step-create"},
    "launch": {"launch-bound"},
}
"""The causes that each fault of train.py may be called; of `none` nothing that is likely."""
_HARMLESS, _LIKELY = frozenset({"kernel-bound", "no-amp", "cpu-contention"}), 0.3


def is_named(fault: str, causes: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the first cause is the one that was planted."""
    if EXPECTED[fault]:
        return bool(causes) and causes[0]["id"] in EXPECTED[fault]
    return not [c for c in causes if c["probability"] >= _LIKELY and c["id"] not in _HARMLESS]


def look_line(folder: Path) -> str:
    """What one look comes to, from what is kept of it: gpudebug's figures beside the program's."""
    causes = json.loads((folder / "causes.json").read_text())
    evidence = json.loads((folder / "evidence.json").read_text())
    lines = [json.loads(line) for line in (folder / "own.jsonl").read_text().splitlines()]
    begin, window = lines[0], evidence["window"] or {"start_s": 0, "end_s": 0}
    wall = begin["wall"] - begin["t"] + float(begin["t0"])
    smi = _mean(_smi((folder / "nvidia-smi.csv").read_text(), wall), window)
    inside = [line for line in lines if _within(line["t"] - float(begin["t0"]), window)] or [begin, begin]
    seconds = inside[-1]["t"] - inside[0]["t"] or math.nan
    busy, rate = ((inside[-1][name] - inside[0][name]) / seconds for name in ("busy_s", "steps"))
    first = f"{causes[0]['id']} {100 * causes[0]['probability']:.0f} %" if causes else "no cause"
    return (
        f"{'MATCH' if is_named(folder.name, causes) else 'OTHER'} {first}; utilisation"
        f" {shown(evidence['utilisation'])} %, by nvidia-smi {shown(smi)}, by events {shown(100 * busy)};"
        f" {shown(evidence['steps_per_s'])} steps/s, its own {shown(rate)}"
    )


def _within(at: float, window: Mapping[str, float]) -> bool:
    return window["start_s"] <= at <= window["end_s"]


def _mean(values: Iterator[tuple[float, float]], window: Mapping[str, float]) -> float | None:
    inside = [value for at, value in values if _within(at, window)]
    return statistics.fmean(inside) if inside else None


def _smi(text: str, wall: float) -> Iterator[tuple[float, float]]:
    """Rows of `nvidia-smi --query-gpu=timestamp,utilization.gpu`, by the seconds since `wall`."""
    for row in csv.reader(io.StringIO(text)):
        with suppress(ValueError, IndexError):
            stamp, _, ms = row[0].strip().partition(".")
            at = calendar.timegm(time.strptime(stamp, "%Y/%m/%d %H:%M:%S")) + float(f"0.{ms or 0}")
            yield at - wall, float(row[1].strip(" %"))


def trace_line(path: Path) -> str:
    """Kernels, their busy share and the graph launches of a trace, counted without gpudebug."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") == "kernel")
    busy, until = 0.0, -math.inf
    for begin, end in spans:
        busy, until = busy + max(0.0, end - max(begin, until)), max(until, end)
    share = 100 * busy / (until - spans[0][0]) if spans else None
    graphs = sum("GraphLaunch" in str(e.get("name")) for e in events)
    operators = sum(e.get("cat") == "cpu_op" for e in events)
    return f"{operators} operators, {len(spans)} kernels, {graphs} graphs, busy {shown(share)} %"


def noise(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What repeated runs of one command differ by, by the names of the table of assumptions."""
    values = {
        "noise_points": [e["utilisation"] for e in runs if e["utilisation"] is not None],
        "noise_rate": [math.log(e["steps_per_s"]) for e in runs if e["steps_per_s"]],
    }
    within = [
        e["standard_error"] * math.sqrt((w["end_s"] - w["start_s"]) / TABLE["long_s"].value)
        for e in runs
        if (w := e["window"]) and e["standard_error"] is not None
    ]
    found = {name: statistics.stdev(known) for name, known in values.items() if len(known) > 1}
    return found | ({"within_points": statistics.fmean(within)} if within else {})


def beside(measured: Mapping[str, float]) -> Iterator[str]:
    """A line for each assumption that was measured."""
    for name, value in measured.items():
        row = TABLE[name]
        yield f"{name}: {shown(value)} {row.unit} measured, {shown(row.value)} assumed ({row.meaning})"


def shown(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:.3g}"
