"""Logs in the formats of public training programs: the format is theirs, the figures are made here.

A file of excerpts lists for each its format, the course that its loss takes, and what a careful person reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from pathlib import Path
from random import Random
from string import Formatter
from typing import Any

import yaml

ROWS = 24
SHOWN = ("loss", "mean", "val", "small", "odd")
TREND = {"falls": "CONVERGING", "flat": "PLATEAU", "rises": "DIVERGING", "turns": "DIVERGING", "nan": "NAN"}


@dataclass(frozen=True)
class Excerpt:
    """A log and what a careful person reads in it; of `trend`, `last` and `failure`, any that is listed."""

    name: str
    source: str
    text: str
    trend: list[str]
    last: list[float | None]
    failure: list[str | None]
    steps: int | None
    unit: str | None
    rank: str | None = None


def course(kind: str, start: float, noise: float, seed: str) -> list[float]:
    """Values of a loss from `start` on: it falls, is flat, rises, falls and turns, or becomes nan."""
    random = Random(seed)
    falling = [start * (0.4 + 0.6 * 0.82**i) for i in range(ROWS)]
    level = {
        "falls": falling,
        "flat": [start] * ROWS,
        "rises": [start * (1 + i / 8) for i in range(ROWS)],
        "turns": [*falling[:16], *(falling[15] + start * (i + 1) / 12 for i in range(ROWS - 16))],
        "nan": falling,
    }[kind]
    values = [value * (1 + random.uniform(-noise, noise)) for value in level]
    return [*values[:18], *[nan] * 6] if kind == "nan" else values


def _printed(template: str, name: str, values: dict[str, Any]) -> float | None:
    """The value of a placeholder as it is printed, or None if it is not there."""
    for _, key, form, _ in Formatter().parse(template):
        if key == name:
            return float(format(values[key], form or ""))
    return None


def _excerpt(entry: dict[str, Any]) -> Excerpt:
    kind = entry.get("course", "falls")
    losses = course(kind, entry.get("start", 2.5), entry.get("noise", 0.03), entry["name"])
    every, first, per = entry.get("every", 10), entry.get("first", 1), entry.get("per", ROWS)
    ranks = entry.get("ranks", 1)
    template = entry["rows"]
    lines = [entry.get("head", "")]
    shown: dict[str, float | None] = {}
    for i, loss in enumerate(losses):
        for rank in sorted(range(ranks), key=lambda rank: (rank + i + 1) % ranks):
            at = {
                "i": i,
                "step": (i + first) * every,
                "epoch": i // per,
                "inner": (i % per + first) * every,
                "loss": loss * (1 + entry.get("apart", 0.2) * rank),
                "mean": sum(losses[: i + 1]) / (i + 1),
                "val": loss * 1.15,
                "small": loss / 40,
                "odd": 0.5 + 0.4 * ((i * 7) % 5) / 5,
                "up": 1 - 0.9**i,
                "lr": 1e-3 * (1 - i / ROWS),
                "rank": rank,
                "sec": f"{i:02d}",
            }
            at |= {"count": at["step"] * 64, "left": ROWS - i}
            lines.append(template.format_map(at))
            if rank == 0:
                shown = {key: _printed(template, key, at) for key in SHOWN}
    if kind == "nan" or entry.get("tail"):
        lines.append(entry.get("tail", ""))
    wanted = entry.get("last", ["loss"])
    return Excerpt(
        entry["name"],
        entry["source"],
        "".join(lines),
        entry.get("trend", [TREND[kind]]),
        [None if name is None else shown[name] for name in wanted],
        entry.get("failure", [None]),
        entry.get("steps"),
        entry.get("unit"),
        entry.get("rank"),
    )


def excerpts(file: Path) -> list[Excerpt]:
    return [_excerpt(entry) for entry in yaml.safe_load(file.read_text("utf-8"))]
