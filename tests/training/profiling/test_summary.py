"""Figures as text: the table, the tree with its bottleneck, and the reasons for an empty one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.profiled import run
from tests.support.section_reports import node, section

from gpudebug.training.profiling import summary

ROLLOUT = node(
    "Rollout Total",
    10,
    0.1523,
    node("Student Forward", 10, 0.0345),
    node(
        "Teacher Total",
        10,
        0.1012,
        node("Reshape", 10, 0.0015),
        node("GPU->CPU", 10, 0.0523),
        node("Nim Calls", 10, 0.0389),
        node("Stack+Back", 10, 0.0085),
    ),
    node("Replay Store", 10, 0.0166),
)
# Seed 003's figures, with the shares that it leaves out.
TREE = """\
============================================================
Rollout Timing Profile (agent_step=5120)
============================================================
  Rollout Total:       15.23 ms
    - Student Forward:  3.45 ms   22.7 %
    - Teacher Total:   10.12 ms   66.4 %
        • Reshape:      0.15 ms    1.5 %
        • GPU->CPU:     5.23 ms   51.7 %  <-- BOTTLENECK
        • Nim Calls:    3.89 ms   38.4 %
        • Stack+Back:   0.85 ms    8.4 %
    - Replay Store:     1.66 ms   10.9 %
============================================================"""


def test_seed_003s_figures() -> None:
    lines = list(summary.tree_lines(ROLLOUT, 10))
    assert summary.framed("Rollout Timing Profile (agent_step=5120)", lines) == TREE


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (node("a", 1, 1.0), None),
        (node("a", 1, 1.0, node("b", 1, 0.3), node("c", 1, 0.3)), None),
        (node("a", 1, 1.0, node("b", 1, 0.31), node("c", 1, 0.3)), "b"),
        (node("a", 1, 1.0, node("b", 1, 0.9, node("c", 1, 0.2)), node("d", 1, 0.1)), "b"),
        (node("a", 1, 1.0, node("b", 1, 0.9, node("c", 1, 0.5, node("d", 1, 0.4)))), "d"),
        (node("a", 0, 0.0, node("b", 1, 0.0)), None),
    ],
)
def test_the_innermost_section_above_30_percent_of_the_whole(
    root: dict[str, Any], expected: str | None
) -> None:
    found = summary.bottleneck(root)
    assert (found and found["name"]) == expected


def test_the_table() -> None:
    rows = [section("env_step", 2000, 0.0125, mem_peak_mb=12.34), section("x", 1, 100.0, gpu_peak_mb=2048.0)]
    rule, head, _, first, second, end = summary.table(rows).splitlines()
    assert rule == end == "-" * len(head)
    assert len(head) == len(first) == len(second)
    assert first.split() == [
        "env_step", "2000", "25.000000", "0.012500", "0.006250", "0.025000", "12.3", "unknown",
    ]  # fmt: skip
    assert second.split()[-2:] == ["unknown", "2048.0"]


def test_tasks_at_the_same_time_are_multiples() -> None:
    task = {"name": "task", "calls": 1000, "total_s": 86.0, "children": []}
    _, line = summary.tree_lines({"name": "gather", "calls": 1, "total_s": 0.1, "children": [task]}, 1)
    assert line.split() == ["-", "task:", "86000.00", "ms", "860", "x", "<--", "BOTTLENECK"]


def test_thousands_of_names_are_not_all_printed(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    with profile_section("outer"):
        for i in range(300):
            with profile_section(f"s{i}"): pass
    print_profiling_summary(tree=True)
    """
    out = run(code, tmp_path).out
    assert "... and 101 more sections: get_profiler().save(path) writes all of them\n" in out
    assert "... and 101 more\n" in out and len(out.splitlines()) < 420


def test_odd_names_keep_the_table_narrow() -> None:
    long = section("begin" + "x" * 10_000 + "end", 1, 1.0)
    _, head, _, first, second, _ = summary.table([long, section("", 1, 1.0)]).splitlines()
    assert len(head) == len(first) == len(second) < 160
    assert first.startswith("beginxx") and "xxend " in first and "…" in first
    assert second.startswith("(no name) ")


def test_printing_says_why_there_is_nothing(tmp_path: Path) -> None:
    assert run("print_profiling_summary()", tmp_path).out.startswith("Profiling is not enabled: ")
    code = "import sys\nenable_profiling()\nprint_profiling_summary(file=sys.stderr)"
    done = run(code, tmp_path)
    assert (done.out, done.err.startswith("Profiling was enabled, but no section")) == ("", True)


def test_the_tree_is_offered_beside_the_table(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    for _ in range(10):
        with profile_section("a"):
            with profile_section("b"): pass
    print_profiling_summary(tree=True)
    """
    lines = run(code, tmp_path).out.splitlines()
    assert "Timing Profile (mean of 10 iterations)" in lines
    assert [line.split(":")[0] for line in lines if " ms" in line] == ["  a", "    - b"]
