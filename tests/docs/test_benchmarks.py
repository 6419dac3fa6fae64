"""docs/benchmarks.md has the rows and bounds of the programs that print it; its figures are recorded."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Iterator
from itertools import chain

import pytest
from tests.bench.__main__ import PARTS
from tests.bench.agents.outcome import HEAD
from tests.bench.diagnosis.__main__ import main as diagnose
from tests.bench.verdicts.campaign import Outcome
from tests.bench.verdicts.rows import GROUPS
from tests.bench.verdicts.table import table
from tests.support.documents import ROOT, page

PAGE = page(ROOT / "docs" / "benchmarks.md")


def rows() -> Iterator[tuple[str, str]]:
    """Expressions for the name and the bound of each `Row(…)` in tests/bench, as they are printed."""
    for part in PARTS.values():
        for node in ast.walk(ast.parse(inspect.getsource(part))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Row":
                yield _expression(node.args[0]), _bound(node.args[2], vars(part))


def _expression(name: ast.expr) -> str:
    if isinstance(name, ast.Constant):
        return re.escape(str(name.value))
    assert isinstance(name, ast.JoinedStr)
    return "".join(_expression(v) if isinstance(v, ast.Constant) else ".+" for v in name.values)


def _bound(expression: ast.expr, names: dict[str, object]) -> str:
    code = compile(ast.Expression(expression), "bound", "eval")
    try:
        value = float(eval(code, dict(names)))
    except NameError:  # computed where it is printed
        return ".*"
    return re.escape(f"{value:.2f} ") if math.isfinite(value) else ""


def test_each_cost_is_a_row_of_the_benchmark_with_its_bound() -> None:
    known = {name: re.compile(rf"{name} +-?[\d.]+ +{bound}(?! *\d+\.).*") for name, bound in rows()}
    recorded = [b.text.splitlines()[1:] for b in PAGE.blocks if b.mark == "rows: cost"]
    assert [line for line in chain(*recorded) if not any(p.fullmatch(line) for p in known.values())] == []
    missing = [name for name, p in known.items() if not any(p.fullmatch(line) for line in recorded[0])]
    assert missing == []


def test_the_table_of_verdicts_has_the_rows_and_bounds_of_the_simulation() -> None:
    text, _ = table({plan.title: Outcome() for group in GROUPS for plan in group.plans})
    printed, recorded = text.splitlines(), PAGE.table("rows: verdicts")
    assert [line.split("|")[1] for line in recorded] == [line.split("|")[1] for line in printed]
    assert recorded[0] == printed[0]
    bounds = [line for line in printed if line.startswith(("| must", "| goal"))]
    assert [line for line in recorded if line in bounds] == bounds


def test_the_table_of_agents_has_the_columns_of_the_evals() -> None:
    head, _, *rows = PAGE.table("rows: agents")
    assert head == HEAD
    assert all(row.count("|") == head.count("|") for row in rows)


def test_a_row_of_the_diagnosis_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    diagnose(["street_scenes", "rtc_inference"])
    printed = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert len(printed) == 4
    assert set(printed) <= set(PAGE.table("rows: diagnosis"))
