"""What a session of an agent reads, in characters: all of it, and a page that is printed again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign
from tests.support.waiting import make_waiting_campaign

from gpudebug.core.agents.page import LIMIT
from gpudebug.edges import templates

SESSION = 7000
A = {"GPUDEBUG_SESSION": "a1"}
INSTRUCTIONS = len(templates.render("agents.md.j2"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All that one session prints, from its first page to its end."""
    campaign: Campaign = make_waiting_campaign(tmp_path_factory.mktemp("session")).pin()

    def said(*words: str) -> str:
        done = campaign.run(*words, env=A)
        printed[words[0]] = done.out
        return done.out + done.err

    printed = dict[str, str]()
    campaign.json("next", env=A)
    return {
        "brief": said("next"),
        "again": said("next"),
        "whole": said("next", "--whole"),
        "propose": said("propose", "--from-catalogue", "dl-no-workers"),
        "verdict": said("next"),
        "verdict out": printed["next"],
        "stop": said("next"),
        "other": campaign.run("next", env={"GPUDEBUG_SESSION": "b2"}).out,
        "person": campaign.run("next").out,
    }


def test_a_session_is_read_in_seven_thousand_characters(texts: dict[str, str]) -> None:
    read = {name: len(texts[name]) for name in ("brief", "propose", "verdict", "stop")}
    assert INSTRUCTIONS + sum(read.values()) <= SESSION, read
    # However long a campaign grows, its page leaves room for the rest; progress has a bound of its own.
    answers = sum(len(texts[name]) for name in ("propose", "verdict out", "stop"))
    assert INSTRUCTIONS + LIMIT + answers <= SESSION
    assert "Verdict: VALIDATED" in texts["verdict"]
    assert "  passed: outcome, loss, delta, throughput" in texts["verdict"]


def test_a_page_that_is_printed_again_has_only_what_changed(texts: dict[str, str]) -> None:
    assert len(texts["again"]) < 0.6 * len(texts["brief"])
    assert (
        "As on your last page (`gpudebug next --whole` repeats it): What counts; Measured so far"
        in texts["again"]
    )
    assert (
        texts["again"].partition("## What to do now")[2] == texts["brief"].partition("## What to do now")[2]
    )
    assert texts["whole"] == texts["brief"]


def test_another_session_and_a_person_get_the_whole_page(texts: dict[str, str]) -> None:
    for name in ("other", "person"):
        assert "## What counts" in texts[name]
        assert "As on your last page" not in texts[name]


def test_what_changed_is_printed_again(tmp_path: Path) -> None:
    campaign = make_waiting_campaign(tmp_path).pin()
    campaign.json("next")
    campaign.json("next", status=5, env=A)
    campaign.add("\n### Hypothesis 1: By hand\n- **Status**: REJECTED\n")
    page = campaign.json("next", status=5, env=A)["brief"]
    assert "## Tried so far" in page
    assert "## What counts" in page  # The budget that is left is another one.
    assert "## Files to read" not in page
