"""The harness itself, and one campaign of a stranger's program (opt in with --run-heavy)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.field import report
from tests.field.campaign import begin, judged
from tests.field.cases import CASES, Change
from tests.field.programs import Place, version
from tests.support.environments import python_with


def test_every_change_changes_its_command_or_its_program() -> None:
    for case in CASES:
        command = case.command_of(case.lengths[1])
        for change in (case.fix, *case.cheats):
            assert change.edits or change.of(command) != command, change.title


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--set", "--workers=2"), "A=1 python t.py --workers 2 -j=0"),
        (("--set", "-j=2"), "A=1 python t.py --workers 0 -j=2"),
        (("--set", "--new=2"), "A=1 python t.py --workers 0 -j=0 --new=2"),
        (("--env", "A=2"), "A=2 python t.py --workers 0 -j=0"),
    ],
)
def test_the_stopwatch_runs_what_is_proposed(words: tuple[str, ...], expected: str) -> None:
    assert Change("", words).of("A=1 python t.py --workers 0 -j=0") == expected


def test_a_row_says_whether_the_interval_holds_the_truth() -> None:
    fix = {"verdict": "VALIDATED", "throughput_ratio": {"value": 2.0, "low": 1.8, "high": 2.2}}
    record = {
        "name": "x",
        "version": "x 1",
        "stranger": "40/90",
        "fix": fix,
        "end": {"device_s": 9, "learning": "loss"},
        "wall_s": 10,
    }
    rows = {
        ratio: report.table([{**record, "truth": {"ratio": ratio}}]).splitlines()[-1] for ratio in (2.1, 2.3)
    }
    assert "| a stranger on one core for 40 s of each 90 |" in rows[2.1]
    assert "| 2.10 | VALIDATED | 2.00 (1.80 to 2.20) | yes |" in rows[2.1]
    assert "| 2.30 | VALIDATED | 2.00 (1.80 to 2.20) | no |" in rows[2.3]
    assert "| not measured | VALIDATED | 2.00 (1.80 to 2.20) | unknown |" in report.table([record])


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_more_environments_make_stable_baselines_faster(tmp_path: Path) -> None:
    packages = ("torch", "stable_baselines3", "rl_zoo3")
    python = python_with(tmp_path, "GPUDEBUG_FIELD_PYTHON", packages, packages)
    case = next(case for case in CASES if case.name == "sb3-envs")
    place = Place(tmp_path, tmp_path, Path(python))
    assert version(case, place).startswith("stable_baselines3 ")
    folder = tmp_path / "work" / case.name
    gpudebug = begin(case, place, folder)
    verdict = judged(gpudebug, case, folder, case.fix)
    assert verdict["verdict"] == "VALIDATED", verdict
