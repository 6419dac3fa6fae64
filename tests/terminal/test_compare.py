"""A comparison as text."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.answers import read

from gpudebug.core.answers.compare import CompareAnswer
from gpudebug.terminal.compare import WIDTH, compare, times

Change = Callable[[dict[str, Any]], None]

SIDE: dict[str, Any] = {
    "label": "0001-a",
    "runs": ["0001-a", "0003-a"],
    "stand_in": False,
    "utilisation": 31.2,
    "utilisation_reason": None,
    "throughput": {"mean": 10.0, "min": 9.5, "max": 10.5, "unit": "step"},
    "latency": None,
    "wall_time": {"mean_s": 250.0, "min_s": 59.0, "max_s": 441.0},
    "peak_rss_mb": 812.4,
    "peak_device_mb": 20480.0,
    "probe": None,
    "replayed": False,
    "probe_reason": "the command ran no PyTorch training step",
}
ANSWER: dict[str, Any] = {
    "ratio": 1.5,
    "ratio_ci": [1.3, 1.7],
    "verdict": "faster",
    "figure": "throughput",
    "ratios": {
        "throughput": {"value": 1.5, "low": 1.3, "high": 1.7, "unit": "step"},
        "latency": None,
        "wall_time": {"value": 0.05, "low": 0.04, "high": 20.0, "unit": "s/step"},
    },
    "a": SIDE,
    "b": {**SIDE, "label": "0002-b", "throughput": {"mean": 15.0, "min": 14, "max": 16, "unit": "step"}},
    "differences": [{"name": "--lr", "a": "1", "b": "2", "matters": True, "why": None}],
    "same": {"compile": "on", "host": "node1"},
    "sections": [],
    "unknown": ["packages"],
    "notes": ["what is to be noted"],
    "files": ["runs/0001-a", "runs/0002-b"],
}


def shown(change: Change = lambda answer: None) -> str:
    answer = copy.deepcopy(ANSWER)
    change(answer)
    return compare(read(CompareAnswer, answer))


def rows(text: str) -> list[list[str]]:
    """Each line's columns, without the blanks between them."""
    return [[c.strip() for c in line.split("  ") if c.strip()] for line in text.splitlines()]


def test_the_table_the_verdict_and_what_differs() -> None:
    found = rows(shown())
    for row in (
        ["gpu_util", "31.2%", "31.2%"],
        ["throughput", "10 steps/s", "15 steps/s", "1.50x (1.30x to 1.70x)"],
        ["min", "9.5 steps/s", "14 steps/s"],
        ["wall time", "4 min 10 s", "4 min 10 s", "0.05x (0.04x to 20x) a step"],
        ["min", "59 s", "59 s"],
        ["host memory", "812 MB", "812 MB"],
        ["device memory", "20480 MB", "20480 MB"],
        ["Verdict: faster: B is 1.50x as fast as A by throughput (95% CI 1.30 to 1.70)"],
        ["--lr", "1 -> 2"],
        ["Same: compile (on), host"],
        ["Unknown: packages"],
        ["note: what is to be noted"],
        ["runs/0002-b"],
    ):
        assert row in found


def _cannot_tell(answer: dict[str, Any]) -> None:
    answer.update(verdict="cannot_tell", ratio=1.02, ratio_ci=[0.9, 1.15])


def _unknown(answer: dict[str, Any]) -> None:
    answer["a"].update(utilisation=None, peak_rss_mb=None, throughput=None)


def _latency(answer: dict[str, Any]) -> None:
    figures = {"mean_s": 0.0123, "min_s": 0.01, "max_s": 1.5, "first_s": 0.3, "count": 9, "warmup": 0}
    answer["b"]["latency"] = figures


def _stand_in(answer: dict[str, Any]) -> None:
    answer["a"]["stand_in"] = True


def _no_difference(answer: dict[str, Any]) -> None:
    answer["differences"] = []


def _packages(answer: dict[str, Any]) -> None:
    answer["differences"] += [
        {"name": f"package p{i}", "a": "1", "b": "2", "matters": True, "why": None} for i in range(40)
    ]


def _harmless(answer: dict[str, Any]) -> None:
    answer["differences"][0].update(matters=False, why="where it writes")


SAID: dict[str, tuple[Change, list[str]]] = {
    "cannot tell": (
        _cannot_tell,
        ["Verdict: cannot tell: B is 1.02x as fast as A by throughput (95% CI 0.90 to"],
    ),
    "utilisation unknown": (_unknown, ["gpu_util", "unknown", "31.2%"]),
    "throughput unknown": (_unknown, ["throughput", "unknown", "15 steps/s", "1.50x (1.30x to 1.70x)"]),
    "latency": (_latency, ["latency", "unknown", "12.3 ms"]),
    "the first one": (_latency, ["first (cold)", "unknown", "300 ms"]),
    "the slowest one": (_latency, ["max", "unknown", "1.5 s"]),
    "no GPU": (_stand_in, ["gpu_util", "31.2% (CPU)", "31.2%"]),
    "no difference": (_no_difference, ["Differs: nothing known"]),
    "many packages": (_packages, ["and 28 more packages (--json)"]),
    "no matter": (_harmless, ["--lr", "1 -> 2", "(does not matter)"]),
}


@pytest.mark.parametrize(("change", "row"), SAID.values(), ids=SAID)
def test_what_is_said(change: Change, row: list[str]) -> None:
    assert row in rows(shown(change))


def test_one_run_a_side_has_no_spread() -> None:
    def one(answer: dict[str, Any]) -> None:
        answer["a"]["runs"] = answer["b"]["runs"] = ["0001-x"]

    assert "  min" in shown()
    assert "  min" not in shown(one)


def test_long_texts_are_wrapped() -> None:
    def long(answer: dict[str, Any]) -> None:
        answer["notes"] = ["word " * 50]
        answer["a"]["label"] = "python train.py " * 20

    assert max(len(line) for line in shown(long).splitlines()) <= WIDTH


@pytest.mark.parametrize(("value", "text"), [(1.234, "1.23x"), (123.4, "123x"), (0.0123, "0.0123x")])
def test_times(value: float, text: str) -> None:
    assert times(value) == text
