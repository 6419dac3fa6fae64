"""What `verify` says, asked in this process, in short."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.campaigns import Campaign

from gpudebug.core.answers.verify import Mismatch, VerifyAnswer
from gpudebug.engine.verify import verify


class Said(NamedTuple):
    """One problem: its file as seen from the campaign, and what was said there."""

    file: str
    field: str
    expected: Any
    found: Any
    why: str | None


def answer(campaign: Campaign, number: int | None = None) -> VerifyAnswer:
    """The whole answer. Each line that it names holds what it names."""
    told = verify(campaign.folder, number)
    for problem in told.problems:
        _check_line(problem)
    return told


def problems(campaign: Campaign, number: int | None = None) -> list[Said]:
    return [
        Said(str(Path(p.file).relative_to(campaign.folder)), p.field, p.expected, p.found, p.why)
        for p in answer(campaign, number).problems
    ]


def _check_line(problem: Mismatch) -> None:
    if problem.line is None:
        return
    text = Path(problem.file).read_text(encoding="utf-8").splitlines()[problem.line - 1]
    found, field = problem.found, re.split(r"[.\[]", problem.field)[-1].rstrip("]")
    # A value that is gone has the line of what it was in.
    assert found is None or field.lower() in text.lower() or str(found) in text, (problem, text)
