"""Accepted lines beside the record: what has none, and what is no number."""

from __future__ import annotations

import shutil

from tests.support.campaigns import Campaign
from tests.support.tampering import substitute
from tests.support.verifying import answer, problems

VALIDATED = "- **Status**: VALIDATED\n"


def test_a_line_without_a_record_names_the_command(told: Campaign) -> None:
    substitute(told.progress, VALIDATED, VALIDATED + "- **Accepted**: 1\n")
    [problem] = problems(told)
    assert (problem.field, problem.found) == ("accepted", "1")
    assert problem.why is not None and problem.why.endswith("gpudebug accept 1")


def test_without_the_folder_of_the_record_the_line_is_taken_as_it_is(told: Campaign) -> None:
    substitute(told.progress, VALIDATED, VALIDATED + "- **Accepted**: 1\n")
    shutil.rmtree(told.folder / ".git" / "gpudebug")
    assert answer(told).ok is True


def test_no_is_no_acceptance(told: Campaign) -> None:
    substitute(told.progress, VALIDATED, VALIDATED + "- **Accepted**: no\n")
    assert answer(told).ok is True
