"""The record of acceptances: what counts is what `accept` wrote, in git's folder, whatever a file says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign

from gpudebug.core.errors import StoreError
from gpudebug.core.progress import HypothesisEntry, parse
from gpudebug.edges.store.private import PrivateFolder
from gpudebug.engine.campaign.accepted import (
    FILE,
    Acceptances,
    Recorded,
    as_submitted,
    forget_submitted,
    keep_submitted,
    recorded,
)
from gpudebug.engine.campaign.load import load

ROW = {"hypothesis": 1, "order": 1, "change": "c", "run": "r", "verdict": "v", "when": "w"}


def entry(*lines: str, status: str = "VALIDATED") -> HypothesisEntry:
    text = "\n".join(["### Hypothesis 1: A", f"- **Status**: {status}", *lines, ""])
    return parse(text.encode(), "p.md").hypothesis(1)


RUNS = "- **Result**:\n  - Runs: runs/0002-h1"
OURS = Recorded(1, "change", "0002-h1", "digest", "now")


@pytest.mark.parametrize(
    ("kept", "found", "person", "session", "by_hand"),
    [
        ({1: OURS}, entry("- **Accepted**: 1", RUNS), 1, 1, False),
        ({1: OURS}, entry(RUNS), None, 1, False),
        ({}, entry("- **Accepted**: 1", RUNS), None, None, True),
        ({1: OURS._replace(run="0001-h1")}, entry("- **Accepted**: 1", RUNS), None, None, True),
        ({1: OURS}, entry("- **Accepted**: 1", RUNS, status="REJECTED"), None, None, True),
        (None, entry("- **Accepted**: 3", RUNS), 3, 3, False),
        (None, entry("- **Accepted**: 3", RUNS, status="REJECTED"), None, None, False),
    ],
    ids=["accepted", "taken back", "by hand", "another verdict", "no more valid", "0.1.0", "0.1.0, rejected"],
)
def test_what_is_accepted(
    kept: dict[int, Recorded] | None,
    found: HypothesisEntry,
    person: int | None,
    session: int | None,
    by_hand: bool,
) -> None:
    acceptances = Acceptances(PrivateFolder(Path("/git"), ("campaign",)), kept)
    assert acceptances.order(found) == person
    assert acceptances.order(found, "a") == session
    assert acceptances.by_hand(found) is by_hand


def test_they_stand_in_the_order_of_their_acceptance() -> None:
    text = "".join(
        f"### Hypothesis {n}: A\n- **Status**: VALIDATED\n- **Accepted**: {n}\n"
        f"- **Result**:\n  - Runs: runs/000{n}-h{n}\n\n"
        for n in (1, 2, 3)
    )
    document = parse(text.encode(), "p.md")
    kept = {n: OURS._replace(order=4 - n, run=f"000{n}-h{n}") for n in (1, 3)}
    found = recorded(document, Acceptances(PrivateFolder(Path("/git"), ()), kept))
    assert [each.number for each in found] == [3, 1]


@pytest.mark.parametrize(
    "data",
    [
        "[" * 5000,
        {"format": 2, "accepted": []},
        {"format": 1},
        {"format": 1, "accepted": [{**ROW, "order": True}]},
        {"format": 1, "accepted": [{**ROW, "hypothesis": -1}]},
        {"format": 1, "accepted": [{**ROW, "run": None}]},
    ],
)
def test_a_record_that_gpudebug_did_not_write_is_a_problem_and_nothing_is_accepted(
    judged: Campaign, data: Any
) -> None:
    judged.pin()
    file = load(judged.folder).entries.acceptances.file
    assert file.name == FILE
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    found = load(judged.folder).entries.acceptances
    assert found.entries == {} and found.problem == "is not what gpudebug writes"
    assert load(judged.folder).entries.accepted == ()


def test_an_element_has_what_was_accepted_when_it_was_submitted(tmp_path: Path) -> None:
    then = Acceptances(PrivateFolder(tmp_path, ("ours",)), {1: OURS})
    keep_submitted(then, "0100")
    since = replace(then, entries={1: OURS, 2: OURS})
    assert as_submitted(since, "0100").entries == {1: OURS}
    with pytest.raises(StoreError, match="is not what gpudebug writes"):
        as_submitted(since, "0200")
    forget_submitted(since, "0100")
    forget_submitted(since, "0100")
    with pytest.raises(StoreError, match="is not what gpudebug writes"):
        as_submitted(since, "0100")


def test_a_record_that_cannot_be_used_is_not_submitted_as_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="belongs to another user"):
        keep_submitted(Acceptances(PrivateFolder(tmp_path, ("ours",)), {}, "belongs to another user"), "0100")
    assert not (tmp_path / "ours").exists()
