"""The order of what waits, through the engine that `status` and `next` share."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.support.campaigns import Campaign
from tests.support.waiting import CAUSE, add_cause

from gpudebug.core.campaign.decide import decide
from gpudebug.core.change.intervention import from_options
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.order import record_order
from gpudebug.engine.diagnosis.weights import proposes, weighed
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.status.status import status


def add(campaign: Campaign, title: str, *set_: str, code: bool = False) -> None:
    propose(campaign.folder, title=title, description="", method="", change=from_options(set_, code=code))


def test_what_promises_most_is_tested_first(waiting: Campaign) -> None:
    add(waiting, "Learning rate", "--lr=0.2")
    add(waiting, "No workers load the batches", "--num_workers=4")
    add(waiting, "Nothing", "--nothing=1")
    record_order(load(waiting.folder), "gpudebug next")
    found = status(waiting.folder).next
    assert (found.action, found.hypothesis) == ("test", 2)
    assert "hypothesis 2, the best expected gain " in found.why
    assert found.why.count(" of 3 untested (") == 1
    states = weighed(load(waiting.folder)).hypotheses
    assert max(states, key=lambda h: h.share or 0).number == 2


def test_of_what_has_to_be_written_too(waiting: Campaign) -> None:
    add(waiting, "Something else", code=True)
    add(waiting, "Load batches in workers, not in the main process", code=True)
    action = decide(weighed(load(waiting.folder)))
    assert (action.kind.value, action.hypothesis) == ("implement", 2)
    assert "the best expected gain of 2 untested" in action.why


@pytest.mark.parametrize("count", [0, 1])
def test_where_there_is_no_choice_nothing_is_looked_at(waiting: Campaign, count: int) -> None:
    add_cause(waiting, "broken: [")
    for n in range(count):
        add(waiting, f"Cause {n}", f"--x={n}")
    loaded = load(waiting.folder)
    assert weighed(loaded) is loaded.campaign


def test_without_a_baseline_nothing_is_looked_at(waiting: Campaign) -> None:
    add(waiting, "One", "--x=1")
    add(waiting, "Two", "--x=2")
    waiting.config.write_text(waiting.config.read_text().replace("--lr=0.1", "--lr=0.7"))
    loaded = load(waiting.folder)
    assert weighed(loaded) is loaded.campaign


def test_a_broken_catalogue_keeps_nobody_from_testing(waiting: Campaign) -> None:
    add(waiting, "One", "--x=1")
    add(waiting, "Two", "--num_workers=2")
    add_cause(waiting, CAUSE + "unknown: 1\n")
    record_order(load(waiting.folder), "gpudebug next")
    found = status(waiting.folder).next
    assert (found.action, found.hypothesis) == ("test", 1)
    assert (
        "the first in the file: the catalogue cannot be read: hypotheses/too-little-work.yaml:2" in found.why
    )
    assert "unknown key unknown" in found.why


def test_status_loads_no_catalogue_even_for_a_choice(waiting: Campaign) -> None:
    """In a process of its own: this one has loaded everything."""
    add(waiting, "One", "--x=1")
    add(waiting, "Two", "--num_workers=2")
    record_order(load(waiting.folder), "gpudebug next")
    code = (
        "import sys\nfrom pathlib import Path\nfrom gpudebug.engine.status.status import status\n"
        "status(Path('.'))\nprint([m for m in sys.modules if 'catalogue' in m or 'diagnosis.case' in m])\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=waiting.folder, capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"


def test_nothing_is_proposed_by_itself_unless_it_is_asked_for(waiting: Campaign) -> None:
    assert not proposes(load(waiting.folder))
    waiting.config.write_text(waiting.config.read_text() + "auto_propose: true\n")
    assert proposes(load(waiting.folder))
