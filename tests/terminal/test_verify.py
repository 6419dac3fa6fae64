"""What verify found, as text."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.answers import read

from gpudebug.core.answers.verify import VerifyAnswer
from gpudebug.terminal.verify import verify

PROBLEM: dict[str, Any] = {
    "hypothesis": 3,
    "baseline": None,
    "run": None,
    "field": "improvement",
    "expected": "+33.6pp",
    "found": "+43.6pp",
    "why": None,
    "file": "/repo/progress/x.md",
    "line": 42,
}
CHECKED = {"baselines": ["workload"], "hypotheses": [1, 3], "runs": ["0001-a", "0002-h1"], "files": 12}
ANSWER: dict[str, Any] = {
    "ok": True,
    "campaign": "x",
    "root": "/repo",
    "problems": [],
    "absent": [],
    "unchecked": [],
    "notes": [],
    "checked": CHECKED,
}

PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "a value": ({}, "progress/x.md:42: hypothesis 3: improvement: expected +33.6pp, found +43.6pp"),
    "of a baseline": (
        {"hypothesis": None, "baseline": "workload"},
        "progress/x.md:42: baseline workload: improvement: expected +33.6pp, found +43.6pp",
    ),
    "of a run alone, without a line": (
        {"hypothesis": None, "line": None, "file": "/repo/runs/0001-a/evidence.json"},
        "runs/0001-a/evidence.json: improvement: expected +33.6pp, found +43.6pp",
    ),
    "unknown": (
        {"expected": None, "found": {"value": 1.5}},
        'progress/x.md:42: hypothesis 3: improvement: expected unknown, found {"value": 1.5}',
    ),
    "a line that is gone": (
        {"found": None},
        "progress/x.md:42: hypothesis 3: improvement: expected +33.6pp, found nothing",
    ),
    "by hand": (
        {"field": "status", "expected": None, "found": "VALIDATED", "why": "UNVERIFIED: by hand"},
        "progress/x.md:42: hypothesis 3: status: found VALIDATED (UNVERIFIED: by hand)",
    ),
    "with a reason": (
        {"why": "because"},
        "progress/x.md:42: hypothesis 3: improvement: expected +33.6pp, found +43.6pp (because)",
    ),
    "a whole file": (
        {
            "field": "a.csv",
            "file": "/repo/a.csv",
            "line": None,
            "why": "altered",
            "expected": "1",
            "found": "2",
        },
        "a.csv: hypothesis 3: altered (expected 1, found 2)",
    ),
    "a file that cannot be read": (
        {"field": "a.csv", "file": "/repo/a.csv", "why": "no CSV", "expected": None, "found": None},
        "a.csv:42: hypothesis 3: no CSV",
    ),
    "a path outside": (
        {"file": "/elsewhere/x.md"},
        "/elsewhere/x.md:42: hypothesis 3: improvement: expected +33.6pp, found +43.6pp",
    ),
    "more than anybody reads": (
        {"expected": "x" * 500},
        f"progress/x.md:42: hypothesis 3: improvement: expected {'x' * 159}…, found +43.6pp",
    ),
}


@pytest.mark.parametrize(("change", "line"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_one_line(change: dict[str, Any], line: str) -> None:
    text = verify(read(VerifyAnswer, {**ANSWER, "ok": False, "problems": [{**PROBLEM, **change}]}))
    assert text.splitlines() == [line, "1 problem in 1 baseline, 2 verdicts, 2 runs, 12 files"]


NOTHING = {"baselines": [], "hypotheses": [], "runs": [], "files": 0}
ABSENT = [
    {"hypothesis": None, "baseline": "workload", "runs": ["0001-a"]},
    {"hypothesis": 1, "baseline": None, "runs": ["0002-h1", "0003-h1"]},
]
SUMS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all is well": (
        {},
        ["OK: 1 baseline, 2 verdicts, 2 runs, 12 files: every figure follows from the evidence"],
    ),
    "with a note": (
        {"notes": ["imported"], "checked": {**CHECKED, "hypotheses": [1]}},
        [
            "note: imported",
            "OK: 1 baseline, 1 verdict, 2 runs, 12 files: every figure follows from the evidence",
        ],
    ),
    "a clone": (
        {"ok": None, "absent": ABSENT, "checked": NOTHING},
        [
            "evidence absent: baseline workload: runs/0001-a",
            "evidence absent: hypothesis 1: runs/0002-h1, runs/0003-h1",
            "UNKNOWN: no evidence to check against was found; copy runs/ from where it was recorded",
        ],
    ),
    "another format": (
        {"ok": None, "unchecked": ["run 0001-a: /repo/runs/0001-a/run.json has format 2"]},
        [
            "not checked: run 0001-a: runs/0001-a/run.json has format 2",
            "UNKNOWN: 1 baseline, 2 verdicts, 2 runs, 12 files: nothing differs, not all could be checked",
        ],
    ),
}


@pytest.mark.parametrize(("change", "lines"), SUMS.values(), ids=SUMS)
def test_the_sum_comes_last(change: dict[str, Any], lines: list[str]) -> None:
    assert verify(read(VerifyAnswer, {**ANSWER, **change})).splitlines() == lines
