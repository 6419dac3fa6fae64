"""What the catalogue offers where nothing is left: to a person, to an agent, and to a campaign by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign
from tests.support.waiting import CAUSE, add_cause, make_waiting_campaign

from gpudebug.core.answers.next import RecordedVerdict
from gpudebug.core.change.intervention import parse as change_of
from gpudebug.core.diagnosis.model import Ranked
from gpudebug.core.progress import parse
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle.next import next_cycle
from gpudebug.engine.diagnosis import offer
from gpudebug.engine.diagnosis.diagnose import diagnose
from gpudebug.engine.diagnosis.offer import Outlook, instructions, outlook
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.status.status import status
from gpudebug.terminal import next as render

AUTO = "auto_propose: true\n"


def next_(campaign: Campaign) -> dict[str, Any]:
    return next_cycle(campaign.folder, lambda _: None).as_json()


def configured(campaign: Campaign, text: str) -> None:
    campaign.config.write_text(campaign.config.read_text() + text)
    campaign.pin()


def by_hand(campaign: Campaign, number: int, change: str, status: str) -> None:
    campaign.add(
        f"\n### Hypothesis {number}: By hand\n- **Intervention**: {change}\n- **Status**: {status}\n"
    )


def test_status_and_next_offer_the_best_fit_in_the_same_words(waiting: Campaign) -> None:
    before = waiting.progress.read_bytes()
    told, answer = status(waiting.folder).next, next_(waiting)
    assert (told.action, answer["action"]) == ("propose", "propose")
    assert told.why == answer["why"]
    assert "dl-no-workers, " in answer["why"]
    assert answer["next_command"] == "gpudebug propose --from-catalogue dl-no-workers"
    first = answer["diagnosis"][0]
    assert first["id"] == "dl-no-workers"
    assert first["probability"] > 0.5
    assert first["ceiling_pp"] > 20
    assert first["for"] == ["the log's data time is 80% of a step"]
    assert len(answer["diagnosis"]) <= 3
    brief = answer["brief"]
    assert "## Diagnosis\n\n- " in brief
    assert "% dl-no-workers, 80% of the time, ceiling +80pp, 5.00x: Batches are loaded in the" in brief
    assert "; for: the log's data time is 80% of a step" in brief
    assert brief.endswith(
        "End with:\n\n    gpudebug -C "
        f"{waiting.folder} propose --from-catalogue dl-no-workers\n    gpudebug -C {waiting.folder} next"
    )
    assert waiting.progress.read_bytes() == before


def test_one_order_everywhere(waiting: Campaign) -> None:
    shown, answer = diagnose(waiting.folder), next_(waiting)
    ids = [cause.id for cause in shown.causes]
    assert [cause["id"] for cause in answer["diagnosis"]] == ids[: len(answer["diagnosis"])]
    assert shown.next_command == answer["next_command"]
    assert ids.index(answer["next_command"].rpartition(" ")[2]) == 0
    lines = [line for line in answer["brief"].splitlines() if "% of the time, ceiling" in line]
    assert [line.split("% ")[1].split(",")[0] for line in lines] == ids[: len(lines)]


def test_with_nothing_likely_the_page_says_so_and_how_to_end(recorded: Campaign) -> None:
    answer = next_(recorded)
    assert "the catalogue names nothing likely" in answer["why"]
    assert "The catalogue has nothing likely left." in answer["brief"]
    assert f"end with `gpudebug -C {recorded.folder} propose --none 'WHY'`." in answer["brief"]


@pytest.mark.parametrize("verdict", ["REJECTED", "VALIDATED", "TESTING", "INVALID"])
def test_what_was_tested_is_not_offered_again(waiting: Campaign, verdict: str) -> None:
    by_hand(waiting, 1, "--set --num_workers=2", verdict)
    by_hand(waiting, 2, "--set num_workers=4", verdict)
    found = outlook(load(waiting.folder))
    offered = found.offer.proposal.change.text if found.offer and found.offer.proposal.change else None
    if verdict == "REJECTED":
        assert offered != "--set --num_workers=4"
        assert found.lines()[0].endswith("; hypothesis 2, REJECTED")
    else:
        assert found.offer is None or found.offer.ranked.id != "dl-no-workers"
    if verdict == "INVALID":
        assert found.lines()[0].endswith("; hypothesis 2, INVALID: gpudebug reopen 2")


def test_of_a_cause_facts_that_do_not_fit_are_left_out_whole() -> None:
    ranked = Ranked(
        "id", "title", 0.5, speaks_for=("a" * 90, "b" * 250, "c" * 20), speaks_against=("d" * 90,)
    )
    line = offer._line(ranked, "hypothesis 1, REJECTED")
    assert len(line) <= offer.LONGEST_LINE
    assert line.endswith(f"for: {'a' * 90}, {'c' * 20}; against: {'d' * 90}; hypothesis 1, REJECTED")


def test_what_is_locked_is_left_to_somebody_who_writes(waiting: Campaign) -> None:
    configured(waiting, AUTO + "locked: [--num_workers]\n")
    found = outlook(load(waiting.folder))
    assert not found.adds
    assert found.offer is not None
    assert found.offer.ranked.id == "dl-no-workers"
    assert found.offer.proposal.change is not None
    assert found.offer.proposal.change.needs_code


def test_it_proposes_and_tests_by_itself_where_it_is_asked_to(waiting: Campaign) -> None:
    configured(waiting, AUTO)
    diagnose(waiting.folder)
    told = status(waiting.folder).next
    assert told.action == "propose"
    assert "auto_propose tests what promises most, dl-no-workers, " in told.why
    assert told.why.endswith("with --set --num_workers=4")
    answer = next_cycle(waiting.folder, lambda _: None)
    assert isinstance(answer, RecordedVerdict)
    assert (answer.hypothesis, answer.verdict) == (1, "VALIDATED")
    assert "hypothesis 1 is untested; proposed by the catalogue: dl-no-workers, " in answer.decided
    assert f"Chosen: {answer.decided}\nVerdict: VALIDATED" in render.next_(answer)
    [entry] = parse(waiting.progress.read_bytes(), "p.md").hypotheses
    assert (entry.cause, entry.status.value) == ("dl-no-workers", "VALIDATED")
    assert entry.description.startswith("In general: ")
    assert "Measured here: " in entry.description
    assert "For it: the log's data time is 80% of a step" in entry.description
    again = next_(waiting)
    assert again["action"] == "propose"
    assert "propose a new one; dl-no-workers, " in again["why"]
    assert again["why"].endswith("likely, is hypothesis 1, VALIDATED: gpudebug accept 1")
    assert again["next_command"].startswith("gpudebug propose --title T")


def test_nothing_is_proposed_by_itself_while_something_waits(waiting: Campaign) -> None:
    configured(waiting, AUTO)
    propose(waiting.folder, title="Mine", description="", method="", change=change_of("--code"))
    answer = next_(waiting)
    assert (answer["action"], answer["hypothesis"]) == ("implement", 1)


def test_an_exhausted_budget_ends_it(waiting: Campaign) -> None:
    configured(waiting, AUTO + "budget: {hypotheses: 1}\n")
    by_hand(waiting, 1, "--set --lr=0.2", "REJECTED")
    before = waiting.progress.read_bytes()
    assert next_(waiting)["action"] == "stop"
    assert waiting.progress.read_bytes() == before


def test_the_code_of_a_cause_is_explained_to_whoever_writes_it(waiting: Campaign) -> None:
    add_cause(waiting)
    propose(
        waiting.folder,
        title="x",
        description="",
        method="",
        change=change_of("--code"),
        cause="too-little-work",
    )
    answer = next_(waiting)
    assert answer["action"] == "implement"
    part = answer["brief"].partition("too-little-work, in general, not measured here\n\n")[2]
    assert part.startswith("- Make the training do more where it says how much it does.\n- Fix: Give it more")
    assert "- What should move: gpu_util rises (the device is busy …)" in part


def test_a_cause_that_is_gone_has_no_instructions(waiting: Campaign) -> None:
    waiting.add("\n### Hypothesis 1: x\n- **Cause**: long-gone\n- **Status**: UNTESTED\n")
    loaded = load(waiting.folder)
    assert instructions(loaded.setup.workspace, loaded.entries.document.hypothesis(1)) == []


def test_thin_evidence_offers_nothing_and_says_what_to_record(recorded: Campaign) -> None:
    configured(recorded, AUTO)
    before = recorded.progress.read_bytes()
    answer = next_(recorded)
    assert answer["action"] == "propose"
    assert "the catalogue names nothing likely: the evidence is thin" in answer["why"]
    assert answer["next_command"].startswith("gpudebug propose --title T")
    assert "would show more: " in answer["brief"]
    assert "propose --title 'CAUSE'" in answer["brief"]
    assert recorded.progress.read_bytes() == before


def test_a_broken_catalogue_is_told_and_stops_nobody(waiting: Campaign) -> None:
    add_cause(waiting, CAUSE + "unknown: 1\n")
    answer = next_(waiting)
    assert answer["action"] == "propose"
    assert "the catalogue cannot be read: hypotheses/too-little-work.yaml:2" in answer["why"]
    assert answer["diagnosis"] == []
    assert outlook(load(waiting.folder)).lines() == []
    assert Outlook().command is None


def test_a_broken_catalogue_keeps_nobody_from_implementing(waiting: Campaign) -> None:
    propose(
        waiting.folder,
        title="T",
        description="",
        method="",
        change=change_of("--code"),
        cause="dl-no-workers",
    )
    add_cause(waiting, CAUSE + "unknown: 1\n")
    answer = next_(waiting)
    assert answer["action"] == "implement"
    assert "the catalogue cannot be read: hypotheses/too-little-work.yaml:2" in answer["brief"]


@pytest.mark.slow
def test_two_at_the_same_time_propose_once(tmp_path: Path) -> None:
    campaign = make_waiting_campaign(tmp_path, config=AUTO)
    campaign.json("next")
    processes = [campaign.start("next", "--json") for _ in range(3)]
    statuses = []
    for process in processes:
        process.communicate(timeout=60)
        statuses.append(process.returncode)
    assert set(statuses) <= {0, 5, 6}
    causes = [h.cause for h in parse(campaign.progress.read_bytes(), "p.md").hypotheses]
    assert causes.count("dl-no-workers") == 1
