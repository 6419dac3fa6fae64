"""People's words beside what gpudebug keeps of them: Accepted lines, and who has nothing to propose."""

from __future__ import annotations

import json
import shutil

from tests.support.campaigns import Campaign
from tests.support.tampering import reseal, rewrite, substitute
from tests.support.verifying import answer, problems

from gpudebug.engine.campaign.confirmation import confirm
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle.nothing import propose_nothing

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


def test_a_line_that_no_command_wrote_ends_nothing_and_is_named(recorded: Campaign) -> None:
    propose_nothing(recorded.folder, "all was tested", "a")
    assert problems(recorded) == []
    substitute(recorded.progress, "session a,", "a person,")
    [problem] = problems(recorded)
    assert problem.field == "nothing to propose"
    assert problem.found.startswith("a person, since ")
    assert str(problem.why).startswith("UNVERIFIED: no `propose --none` recorded it")
    assert recorded.json("next", status=5)["action"] == "propose"
    assert recorded.json("status")["next"]["action"] == "propose"
    # The session may say it again, and the line that was altered stays named.
    assert propose_nothing(recorded.folder, "all was tested", "a").action == "stop"
    assert len(problems(recorded)) == 1


def test_a_record_that_was_altered_is_named(recorded: Campaign) -> None:
    propose_nothing(recorded.folder, "all was tested", "a")
    [file] = (recorded.folder / ".git/gpudebug/said").glob("*/nothing.json")
    file.write_text("[]")
    assert {p.field for p in problems(recorded)} == {"nothing.json", "nothing to propose"}


def test_in_a_clone_it_is_noted(recorded: Campaign) -> None:
    propose_nothing(recorded.folder, "all was tested", "a")
    shutil.rmtree(recorded.folder / ".git/gpudebug")
    assert any("said in another checkout" in note for note in answer(recorded).notes)
    assert recorded.json("status")["next"]["action"] == "propose"


def test_a_word_that_a_later_one_followed_was_said(told: Campaign) -> None:
    [file, *_] = sorted((told.folder / "runs").glob("*/verdict.json"))
    verdict = json.loads(file.read_text())
    for text in ("I looked", "I looked again"):
        confirm(load(told.folder).setup, 1, verdict, text, "counts")
    found = {}
    for text in ("I looked", "I looked again", "I did not look"):
        rewrite(file, confirmed=text)
        reseal(file.parent)
        found[text] = [p.expected for p in problems(told) if p.field == "confirmed"]
    assert found == {"I looked": [], "I looked again": [], "I did not look": ["I looked again"]}
