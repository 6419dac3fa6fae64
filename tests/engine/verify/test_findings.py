"""Findings add up to an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.answers.verify import AbsentEvidence
from gpudebug.engine.verify.findings import Finding, Findings

ABSENT = AbsentEvidence(hypothesis=1, runs=("0002-h1",))
PROBLEM = Finding("status", found="VALIDATED", file=Path("p.md"))
SUMS: dict[str, tuple[Findings, bool | None]] = {
    "nothing": (Findings(), True),
    "a note": (Findings(notes=["x"]), True),
    "absent": (Findings(absent=[ABSENT]), None),
    "not checked": (Findings(unchecked=["x"]), None),
    "a problem": (Findings(problems=[PROBLEM]), False),
    "a problem, the rest absent": (Findings(problems=[PROBLEM], absent=[ABSENT], unchecked=["x"]), False),
}


@pytest.mark.parametrize(("findings", "ok"), SUMS.values(), ids=SUMS)
def test_what_is_absent_is_neither_right_nor_wrong(findings: Findings, ok: bool | None) -> None:
    assert findings.ok is ok


def test_secrets_leave_neither_in_what_is_expected_nor_in_what_was_found() -> None:
    problem = PROBLEM.but(expected={"lines": ["key abc", 1]}, found="key abc")
    told = problem.told(lambda text: text.replace("abc", "[redacted]"))
    assert told.expected == {"lines": ["key [redacted]", 1]}
    assert told.found == "key [redacted]"
