"""A verdict's gates as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.answers.gates import GateRow
from gpudebug.core.statistics import numbers
from gpudebug.terminal.colours import coloured
from gpudebug.terminal.fit import labelled


def gates(rows: Sequence[GateRow]) -> list[str]:
    """Render a line a gate with its note below; skipped gates share the last line."""
    lines = []
    skipped = [g for g in rows if g.result == "skipped"]
    for g in [g for g in rows if g.result != "skipped"]:
        value, result = g.value or numbers.UNKNOWN, f" {g.result}"
        first, *rest = labelled(f"  {g.name:<19}{result:<9} ", f"{value}  [{g.threshold}]")
        lines += [first.replace(result, f" {coloured(g.result)}", 1), *rest]
        if g.note:
            lines += labelled(f"  {'':<19} {'':<8} ", g.note)
    for note in dict.fromkeys(g.note for g in skipped):
        names = ", ".join(g.name for g in skipped if g.note == note)
        lines += labelled("  skipped: ", names + (f" ({note})" if note else ""))
    return lines
