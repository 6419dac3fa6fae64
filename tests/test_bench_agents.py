"""The evals of agents: which claims count as true, a series that goes on, and its table."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bench.agents.__main__ import FEW, PROGRAMS, main, plan
from tests.bench.agents.characters import CHARACTERS
from tests.bench.agents.outcome import (
    CONTROL,
    HEAD,
    AgentOutcome,
    Cell,
    Ratio,
    Results,
    agrees,
    judged,
    ratio_of,
    reading,
    shares,
    table,
)
from tests.bench.agents.program import Watch, prepare, with_change
from tests.bench.agents.sessions import REAL, claimed
from tests.support import zoo
from tests.support.campaigns import killed_at_the_end, wait_for

TRUTH = Ratio(2.0, 1.9, 2.1)


def outcome(character: str = "thorough", claim: Ratio | None = TRUTH, **changes: object) -> AgentOutcome:
    cell = Cell("a", character, "cli", int(str(changes.pop("repeat", 0))))
    made = AgentOutcome(cell, claim, "VALIDATED", "all gates pass", 100.0, 120.0, 9000)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_stopwatch_is_the_mean_of_interleaved_pairs() -> None:
    ratio = ratio_of([(10, 20), (10, 22), (10, 18)])
    assert ratio.low < ratio.value < ratio.high
    assert ratio.value == pytest.approx(1.99, abs=0.01)
    assert ratio_of([(10, 20)]) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("claim", "agree"),
    [
        (Ratio(2.0, 2.0, 2.0), True),
        (Ratio(2.2, 2.2, 2.2), True),
        (Ratio(2.5, 2.5, 2.5), False),
        (Ratio(2.5, 2.05, 3.0), True),
        (Ratio(1.5, 1.2, 1.8), False),
    ],
)
def test_a_claim_agrees_if_its_interval_meets_that_of_the_stopwatch(claim: Ratio, agree: bool) -> None:
    assert agrees(claim, TRUTH) is agree


@pytest.mark.parametrize(
    ("found", "read"),
    [
        (outcome(), "true"),
        (outcome(claim=None, verdict="INCONCLUSIVE"), "open"),
        (outcome(claim=Ratio(6.0, 5.0, 7.0)), "wrong"),
        (outcome("cheating"), "wrong"),
        (outcome("cheating", None), "true"),
        (outcome("crashing", None, told="CRASHED (exception)"), "true"),
        (outcome("crashing", None, told="the device was shared"), "wrong"),
        (outcome("crashing", told="CRASHED"), "wrong"),
    ],
)
def test_each_kind_of_session_has_its_own_truth(found: AgentOutcome, read: str) -> None:
    assert reading(found, TRUTH) == read


def test_what_differs_between_repeats_is_flaky_and_not_wrong() -> None:
    right, wrong, none = outcome(), outcome(claim=Ratio(6.0, 6.0, 6.0)), outcome(claim=None)
    cases = ([right, right], [wrong, wrong], [none, none], [right, wrong], [right, none])
    assert [judged(o, TRUTH) for o in cases] == ["true", "wrong", "open", "flaky", "flaky"]


def test_a_series_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    first = Results(tmp_path / "deep" / "results.jsonl")
    first.add_truth("a", TRUTH)
    first.add(outcome(exported=TRUTH, stopwatch=Ratio(1.0, 0.9, 1.1)))
    first.add(outcome(claim=None, repeat=1))
    again = Results(first.path)
    assert (again.outcomes, again.truths) == (first.outcomes, first.truths)
    assert list(again.outcomes) == [Cell("a", "thorough", "cli", 0), Cell("a", "thorough", "cli", 1)]


def test_the_table_measures_each_session_by_its_control(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add_truth("a", TRUTH)
    results.add(outcome(CONTROL, Ratio(3.07, 3.07, 3.07), device_s=40.0, characters=6000))
    results.add(outcome(exported=Ratio(2.05, 1.8, 2.3)))
    results.add(outcome("hasty", exported=Ratio(5.9, 5.0, 7.0)))
    lines = table(results).splitlines()
    assert lines[0] == HEAD
    assert all(line.count("|") == HEAD.count("|") for line in lines)
    assert "| 3.07x | wrong |" in lines[2]
    assert lines[3].endswith("| true | 2.05x (1.80 to 2.30) | 100 | 9000 | 2.5x, 1.5x |")
    assert shares(results)[1:] == [
        "thorough by cli: of 1 claims 1 true; 2.5x device-seconds, 1.5x characters; "
        "1 of 1 exports agree with the stopwatch",
        "hasty by cli: of 1 claims 1 true; 2.5x device-seconds, 1.5x characters; "
        "0 of 1 exports agree with the stopwatch",
    ]
    assert main(["--table", "--results", str(results.path)]) == 0
    assert capsys.readouterr().out.startswith(table(results))


def test_a_stopwatch_beside_a_session_counts_for_it(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add_truth("a", Ratio(4.0, 3.9, 4.1))
    results.add(outcome(exported=Ratio(2.05, 1.8, 2.3), stopwatch=TRUTH))
    assert "| 2.00x (1.90 to 2.10) | 2.00x (1.90 to 2.10) | true | 2.05x" in table(results)
    assert shares(results) == ["thorough by cli: of 1 claims 1 true; 1 of 1 exports agree with the stopwatch"]


def test_the_whole_series_is_what_was_decided() -> None:
    cells = plan(PROGRAMS, tuple(CHARACTERS), ("cli", "mcp"), 3)
    assert len(PROGRAMS) == 8 and set(PROGRAMS) <= set(zoo.names())
    assert len(cells) == len(set(cells))
    counts = {(c.character, c.face): 0 for c in cells}
    for cell in cells:
        counts[cell.character, cell.face] += 1
    assert counts[CONTROL, "none"] == counts["thorough", "cli"] == 8
    assert counts["thorough", "mcp"] == counts["cheating", "cli"] == counts["crashing", "mcp"] == FEW
    assert {counts[character, "own"] for character in REAL} == {3 * FEW}
    assert plan(PROGRAMS[:1], ("hasty",), ("mcp",), 0) == [
        Cell(PROGRAMS[0], CONTROL, "none"),
        Cell(PROGRAMS[0], "hasty", "mcp"),
    ]


def test_an_agent_finds_a_program_without_candidates_and_with_its_flags(tmp_path: Path) -> None:
    program = prepare("digit_ranker", tmp_path / "repository")
    assert program.right.flags == ("--eval_every=100",)
    assert "### Hypothesis" not in (program.folder / "progress.md").read_text()
    changed = with_change(program.argv, program.right.flags)
    assert changed[-1] == "--eval_every=100" and "--eval_every=5" not in changed
    assert claimed(program.folder) == (None, "", "")


def test_only_trainings_of_the_folder_are_counted_and_not_what_they_start(tmp_path: Path) -> None:
    program = "import os, sys, time\nprint(flush=True)\nos.fork()\nsys.stdin.read()\n"
    (tmp_path / "train.py").write_text(program)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    process = subprocess.Popen(
        [sys.executable, "train.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with killed_at_the_end(process), Watch(tmp_path) as watch, Watch(elsewhere) as other:
        assert process.stdout is not None
        process.stdout.readline()
        wait_for(lambda: watch._leaders() == {process.pid})
        wait_for(lambda: watch.seconds > 0)
    assert other.seconds == 0
