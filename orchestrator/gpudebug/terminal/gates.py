"""A verdict's gates as text for people."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gpudebug.core.agents.session_names import named
from gpudebug.core.answers.gates import GateRow
from gpudebug.core.statistics import numbers
from gpudebug.terminal.colours import coloured
from gpudebug.terminal.fit import labelled


def gates(rows: Sequence[GateRow]) -> list[str]:
    """Render a line a gate with its note below; skipped gates share the last line.

    A session gets those in full that did not pass, and the names of the others.
    """
    if named(os.environ):
        return _in_short(rows)
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


def _in_short(rows: Sequence[GateRow]) -> list[str]:
    lines = []
    for g in (g for g in rows if g.result not in ("pass", "skipped")):
        note = f"; {g.note}" if g.note else ""
        lines += labelled(f"  {g.name} {g.result}: ", f"{g.value or numbers.UNKNOWN}  [{g.threshold}]{note}")
    for result, word in (("pass", "passed"), ("skipped", "skipped")):
        names = ", ".join(g.name for g in rows if g.result == result)
        lines += labelled(f"  {word}: ", names) if names else []
    return lines
