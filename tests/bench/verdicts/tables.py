"""The tables: each figure with its interval, the worst of the scenarios, and the bound that it must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.bench.verdicts.campaign import EARLY, SHIPPED, Outcome
from tests.bench.verdicts.cells import Cell, wilson
from tests.bench.verdicts.traces import Scenario

REFERENCE = Scenario("steps", 3.5)
# Share of hypotheses of each true delta that a campaign meets, by which the cost is averaged.
_MIX = {0: 0.70, 10: 0.15, 25: 0.15}


@dataclass(frozen=True)
class Column:
    """One figure of a protocol, in percent of its trials at `delta`; `most` or `least` is its bound."""

    title: str
    delta: int
    count: Callable[[Cell], int]
    most: float | None = None
    least: float | None = None

    @property
    def bound(self) -> str:
        return f"<= {self.most:g} %" if self.most is not None else f">= {self.least:g} %"

    def worst(self, cells: Sequence[Cell]) -> Cell:
        pick = max if self.most is not None else min
        return pick(cells, key=lambda c: self.count(c) / c.trials)

    def kept(self, share: float) -> bool:
        if self.most is not None:
            return 100 * share <= self.most
        return self.least is None or 100 * share >= self.least


def _validated(cell: Cell) -> int:
    return cell.validated


def _rejected(cell: Cell) -> int:
    return cell.rejected


def _binary(cell: Cell) -> int:
    return cell.validated + cell.rejected


COLUMNS = (
    Column("VALIDATED at 0 pp", 0, _validated, most=0.05),
    Column("VALIDATED at 10 pp", 10, _validated, most=2.0),
    Column("binary at 15 pp", 15, _binary, most=35.0),
    Column("VALIDATED at 20 pp", 20, _validated, least=55.0),
    Column("VALIDATED at 25 pp", 25, _validated, least=95.0),
    Column("VALIDATED at 30 pp", 30, _validated, least=99.5),
    Column("REJECTED at 25 pp", 25, _rejected, most=0.5),
)
_SECONDS = {SHIPPED: 190.0, EARLY: 130.0}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def share_text(count: int, trials: int) -> str:
    """`1.3 (1.2-1.5)`: percent with a 95 % interval."""
    low, high = wilson(count, trials)
    digits = 2 if count / trials < 0.005 else 1
    return f"{100 * count / trials:.{digits}f} ({100 * low:.{digits}f}-{100 * high:.{digits}f})"


def headline(outcomes: Sequence[Outcome]) -> tuple[str, list[str]]:
    """The worst of the scenarios for each protocol, with what the shipped one misses."""
    names = list(dict.fromkeys(name for o in outcomes for name in o.cells))
    rows, missed = [], []
    for name in names:
        row = [name]
        for column in COLUMNS:
            cells = [o.cells[name][column.delta] for o in outcomes if column.delta in o.cells.get(name, {})]
            if not cells:
                row.append("-")
                continue
            cell = column.worst(cells)
            count = column.count(cell)
            row.append(share_text(count, cell.trials))
            if name in _SECONDS and not column.kept(count / cell.trials):
                row[-1] += " !"
                missed.append(f"{name}: {column.title} {row[-1][:-2]}, must be {column.bound}")
        seconds = cost(outcomes, name)
        row.append("-" if seconds is None else f"{seconds:.0f}")
        if seconds is not None and seconds > _SECONDS.get(name, seconds):
            row[-1] += " !"
            missed.append(f"{name}: {seconds:.0f} device-seconds, must be <= {_SECONDS[name]:g}")
        rows.append(row)
    bounds = ["must", *(c.bound for c in COLUMNS), " / ".join(f"<= {s:g}" for s in _SECONDS.values())]
    text = markdown(["", *(f"{c.title}, %" for c in COLUMNS), "device-s"], [*rows, bounds])
    return text, missed


def cost(outcomes: Sequence[Outcome], name: str) -> float | None:
    """Mean device-seconds a verdict in the reference scenario, over the deltas that a campaign meets."""
    for outcome in outcomes:
        cells = outcome.cells.get(name, {})
        if outcome.plan.scenario == REFERENCE and cells.keys() >= _MIX.keys():
            return sum(share * cells[delta].seconds for delta, share in _MIX.items())
    return None


def by_scenario(outcomes: Sequence[Outcome], name: str) -> tuple[str, list[str]]:
    """One protocol, scenario by scenario, with the bounds that it misses."""
    rows, missed = [], []
    for outcome in outcomes:
        cells = outcome.cells[name]
        row = [outcome.plan.title]
        for column in COLUMNS:
            cell = cells.get(column.delta)
            row.append(share_text(column.count(cell), cell.trials) if cell else "-")
            if cell and not column.kept(column.count(cell) / cell.trials):
                missed.append(
                    f"{name}, {outcome.plan.title}: {column.title} {row[-1]}, must be {column.bound}"
                )
                row[-1] += " !"
        known = [d for d in _MIX if d in cells]
        row.append(" / ".join(f"{cells[d].seconds:.0f}" for d in known))
        row.append(" / ".join(f"{cells[d].runs:.1f}" for d in known))
        rows.append(row)
    head = [name, *(f"{c.title}, %" for c in COLUMNS), "device-s at 0/10/25", "trial runs"]
    return markdown(head, rows), missed


def dilution(outcomes: Sequence[Outcome], names: Sequence[str]) -> str:
    """What each rule measures of a true delta, and how it judges."""
    rows = []
    for outcome in outcomes:
        for name in names:
            row = [outcome.plan.title, name]
            for cell in outcome.cells[name].values():
                validated, rejected = (100 * n / cell.trials for n in (cell.validated, cell.rejected))
                row.append(f"{cell.delta:+.1f} ({validated:.0f} / {rejected:.0f})")
            rows.append(row)
    deltas = list(outcomes[0].cells[names[0]])
    return markdown(["", "rule", *(f"true {d:+d} pp: measured (VAL / REJ, %)" for d in deltas)], rows)


# What the protocol is not told may cost power, but must not make wins of nothing.
_MOST_BY_CHANCE = 0.5


def robustness(outcomes: Sequence[Outcome]) -> tuple[str, list[str]]:
    """The shipped protocol where it knows less, a row each, with what it misses."""
    rows, missed = [], []
    for outcome in outcomes:
        for name, cells in outcome.cells.items():
            title = f"{outcome.plan.title}{name.removeprefix(SHIPPED).removeprefix(', prior')}"
            share = cells[0].validated / cells[0].trials
            row = [title, share_text(cells[0].validated, cells[0].trials)]
            if 100 * share > _MOST_BY_CHANCE:
                missed.append(f"{title}: VALIDATED at 0 pp {row[1]}, must be <= {_MOST_BY_CHANCE:g} %")
                row[1] += " !"
            row += [share_text(cells[d].validated, cells[d].trials) for d in (10, 25)]
            row.append(share_text(cells[25].rejected, cells[25].trials))
            row.append(" / ".join(f"{cells[d].seconds:.0f}" for d in _MIX))
            rows.append(row)
    head = ["", *(f"VALIDATED at {d} pp, %" for d in _MIX), "REJECTED at 25 pp, %", "device-s at 0/10/25"]
    return markdown(head, rows), missed
