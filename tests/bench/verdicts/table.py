"""The table: what each row came to, the bounds of its group, and which of them are missed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.bench.verdicts.campaign import SHARES, Outcome
from tests.bench.verdicts.rows import AT_LEAST, GROUPS, SECONDS, Bounds, Group

from gpudebug.core.words import Status

COLUMNS = {
    **{str(delta): f"VALIDATED at {delta} pp, %" for delta in SHARES},
    "R25": "REJECTED at 25 pp, %",
    SECONDS: SECONDS,
    "held": "interval holds, %",
    "trials": "trials",
}
MIX = {0: 0.70, 10: 0.15, 25: 0.15}
"""Changes of each true effect that a campaign meets, by which the cost is averaged."""


_DIGITS = {"0": 2, "R25": 2, SECONDS: 0, "trials": 0}


def figures(outcome: Outcome) -> dict[str, float]:
    """By column; NaN if no trial was of that kind."""

    def share(delta: int, status: Status) -> float:
        ended = [t.status for t in outcome.trials if t.delta == delta]
        return 100 * _mean([float(s is status) for s in ended])

    seconds = {d: _mean([t.seconds for t in outcome.trials if t.delta == d]) for d in MIX}
    return {
        **{str(delta): share(delta, Status.VALIDATED) for delta in SHARES},
        "R25": share(25, Status.REJECTED),
        SECONDS: sum(part * seconds[d] for d, part in MIX.items()) + outcome.baseline,
        "held": 100 * _mean([float(t.held) for t in outcome.trials]),
        "trials": float(len(outcome.trials)),
    }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def misses(column: str, value: float, bounds: Bounds) -> bool:
    """Whether the figure is on the wrong side of its bound; one without a trial misses none."""
    bound = bounds.get(column)
    if bound is None or math.isnan(value):
        return False
    return value < bound if column in AT_LEAST else value > bound


def table(found: Mapping[str, Outcome]) -> tuple[str, list[str]]:
    """The rows that were simulated, by title, with their groups' bounds; and a line for each must missed."""
    lines = [["", *COLUMNS.values()], ["---"] * (1 + len(COLUMNS))]
    missed: list[str] = []
    for group in GROUPS:
        here = {p.title: figures(found[p.title]) for p in group.plans if p.title in found}
        for title, values in here.items():
            wrong = [c for c, value in values.items() if misses(c, value, group.must)]
            lines.append([title, *(_shown(c, v) + (" !" if c in wrong else "") for c, v in values.items())])
            missed += [
                f"{title}: {COLUMNS[c]} {_shown(c, values[c])}, must be {_bound(c, group.must)}"
                for c in wrong
            ]
        lines += bounds_of(group) if here else []
    return "\n".join(f"| {' | '.join(line)} |" for line in lines), missed


def bounds_of(group: Group) -> list[list[str]]:
    """The rows below a group's own."""
    named = {f"must, {group.title}": group.must, f"goal, {group.title}": group.goal}
    return [[name, *(_bound(c, b) for c in COLUMNS)] for name, b in named.items() if b]


def _shown(column: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.{_DIGITS.get(column, 1)}f}"


def _bound(column: str, bounds: Bounds) -> str:
    if column not in bounds:
        return ""
    return f"{'>=' if column in AT_LEAST else '<='} {bounds[column]:g}"
