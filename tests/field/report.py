"""What was measured, as a table in Markdown: one row a campaign, nothing that was not run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_HEAD = (
    "program",
    "version",
    "beside",
    "unit of work",
    "learning by",
    "true ratio",
    "verdict",
    "interval",
    "holds the truth",
    "device s",
    "wall s",
)


def records(out: Path) -> list[Mapping[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]


def table(found: Iterable[Mapping[str, Any]]) -> str:
    """The campaigns of right fixes."""
    lines = [_row(_HEAD), _row("---" for _ in _HEAD)]
    lines += [_row(_cells(record)) for record in found if "fix" in record]
    return "\n".join(lines)


def counts(found: Iterable[Mapping[str, Any]]) -> str:
    """One line each for right fixes, changes that do nothing, and cheats."""
    found = list(found)
    fixes = [record["fix"] for record in found if "fix" in record]
    nothing = [verdict for record in found for verdict in record.get("aa", ())]
    cheats = [verdict for record in found for verdict in record.get("cheats", ())]
    lines = []
    for name, verdicts in (("right fixes", fixes), ("changes that do nothing", nothing), ("cheats", cheats)):
        kinds = sorted({verdict["verdict"] for verdict in verdicts})
        each = ", ".join(f"{kind} {sum(v['verdict'] == kind for v in verdicts)}" for kind in kinds)
        harm = sum(bool(verdict.get("harm")) for verdict in verdicts)
        lines.append(f"{len(verdicts)} {name}: {each or '-'}; rejected as harmful: {harm}")
    return "\n".join(lines)


def holds(record: Mapping[str, Any]) -> bool | None:
    """Whether the true ratio lies in the verdict's interval; None if one of them is missing."""
    ratio = (record.get("truth") or {}).get("ratio")
    _, low, high = _interval(record["fix"])
    return None if None in (ratio, low, high) else bool(low <= ratio <= high)


def _interval(fix: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """The ratio of throughput, as the stopwatch has it; without one the metric's delta."""
    ratio = fix.get("throughput_ratio")
    if ratio:
        return ratio["value"], ratio["low"], ratio["high"]
    value, low, high = fix.get("delta") or (None, None, None)
    return (value, low, high) if fix.get("metric") != "gpu_util" else (None, None, None)


def _cells(record: Mapping[str, Any]) -> list[str]:
    fix = record["fix"]
    value, low, high = _interval(fix)
    text = "unknown" if value is None else f"{value:.2f}"
    if low is not None and high is not None:
        text += f" ({low:.2f} to {high:.2f})"
    truth = (record.get("truth") or {}).get("ratio")
    return [
        record["name"],
        record["version"],
        _beside(record["stranger"]),
        str(fix.get("throughput_unit") or "unknown"),
        str(record["end"]["learning"] or "unknown"),
        "not measured" if truth is None else f"{truth:.2f}",
        fix["verdict"],
        text,
        {True: "yes", False: "no", None: "unknown"}[holds(record)],
        str(record["end"]["device_s"]),
        str(record["wall_s"]),
    ]


def _beside(stranger: str) -> str:
    on, _, of = stranger.partition("/")
    if not of:
        return "nobody"
    return "a stranger on one core" + (f" for {on} s of each {of}" if on != of else "")


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
