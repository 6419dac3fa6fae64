"""`propose --from-catalogue`: the catalogue's hypothesis for this program, and all that is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign
from tests.support.waiting import add_cause, make_waiting_campaign

from gpudebug.core.change.intervention import parse as change_of
from gpudebug.core.errors import InterventionError, UsageError
from gpudebug.core.progress import HypothesisEntry, parse
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.case import case_of
from gpudebug.engine.diagnosis.from_catalogue import add_once, proposal, propose_from_catalogue, settled
from gpudebug.engine.hypotheses.propose import Duplicate, propose
from gpudebug.engine.status.answer import show
from gpudebug.terminal import show as render


def entries(campaign: Campaign) -> tuple[HypothesisEntry, ...]:
    return parse(campaign.progress.read_bytes(), "p.md").hypotheses


def test_the_command_writes_the_catalogues_words(waiting: Campaign) -> None:
    answer = waiting.json("propose", "--from-catalogue", "dl-no-workers")
    assert (answer["intervention"], answer["cause"]) == ("--set --num_workers=4", "dl-no-workers")
    [entry] = entries(waiting)
    assert entry.title == "Batches are loaded in the training process itself, between the steps"
    assert entry.cause == "dl-no-workers"
    assert "The DataLoader has no workers" in entry.description
    assert "% likely. For it: the log's data time is 80% of a step" in entry.description
    assert "What should move: data_wait_share falls" in entry.test_method
    told = show(waiting.folder, 1)
    assert told.cause == "dl-no-workers"
    assert "Cause         dl-no-workers" in render.show(told)


def test_before_a_baseline_no_more_workers_are_asked_for_than_there_are_cores(tmp_path: Path) -> None:
    campaign = make_waiting_campaign(tmp_path)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        answer = propose_from_catalogue(campaign.folder, "dl-no-workers")
    finally:
        os.sched_setaffinity(0, cores)
    assert answer.intervention == "--set --num_workers=1"


def test_a_knob_of_the_users_own_cause(waiting: Campaign) -> None:
    add_cause(waiting)
    propose_from_catalogue(waiting.folder, "too-little-work", title="Own words")
    [entry] = entries(waiting)
    assert (entry.title, entry.intervention) == ("Own words", "--set --work=0.9")
    assert entry.description.startswith("In general: Its flag says so. The device idles. Measured here: ")


def test_what_is_given_goes_first(waiting: Campaign) -> None:
    propose_from_catalogue(
        waiting.folder,
        "dl-no-workers",
        change=change_of("--set --num_workers=2"),
        description="Mine.",
        method="Mine too.",
    )
    [entry] = entries(waiting)
    assert (entry.intervention, entry.cause) == ("--set --num_workers=2", "dl-no-workers")
    assert (entry.description, entry.test_method) == ("Mine.", "Mine too.")


def test_without_a_flag_somebody_has_to_write_it(waiting: Campaign) -> None:
    waiting.config.write_text(waiting.config.read_text().replace(" --num_workers=0", ""))
    answer = propose_from_catalogue(waiting.folder, "dl-no-workers")
    assert answer.intervention == "--code"
    [entry] = entries(waiting)
    assert entry.test_method.startswith("In general: Find where the training's DataLoader is made")
    with pytest.raises(Duplicate, match="code for dl-no-workers is hypothesis 1 already"):
        propose_from_catalogue(waiting.folder, "dl-no-workers")
    propose_from_catalogue(waiting.folder, "dl-no-workers", change=change_of("--code"), title="Otherwise")
    assert entries(waiting)[1].test_method == entry.test_method


def test_what_was_proposed_is_refused(waiting: Campaign) -> None:
    propose(
        waiting.folder,
        title="By hand",
        description="",
        method="",
        change=change_of("--set num_workers=4"),
    )
    before = waiting.progress.read_bytes()
    with pytest.raises(Duplicate, match="hypothesis 1 already"):
        propose_from_catalogue(waiting.folder, "dl-no-workers")
    assert waiting.progress.read_bytes() == before
    loaded = load(waiting.folder)
    assert settled(loaded.entries, case_of(loaded))["dl-no-workers"].number == 1


def test_what_was_rejected_is_followed_by_code(waiting: Campaign) -> None:
    waiting.progress.write_text(
        waiting.text
        + "\n### Hypothesis 1: By hand\n- **Intervention**: --set --num_workers=4\n- **Status**: REJECTED\n"
    )
    assert propose_from_catalogue(waiting.folder, "dl-no-workers").intervention == "--code"


def test_a_locked_knob_is_left_alone(waiting: Campaign) -> None:
    add_cause(waiting)
    waiting.config.write_text(waiting.config.read_text() + "locked: [--work]\n")
    assert propose_from_catalogue(waiting.folder, "too-little-work").intervention == "--code"
    with pytest.raises(InterventionError, match="locks"):
        propose_from_catalogue(waiting.folder, "too-little-work", change=change_of("--set --work=0.8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--from-catalogue", "dl-no-worker"), 2, "gpudebug catalogue dl-no-workers"),
        (
            ("--title", "x", "--set", "--a=1", "--cause", "dl-no-worker"),
            2,
            "gpudebug catalogue dl-no-workers",
        ),
        (("--from-catalogue", "py-gc", "--cause", "py-gc"), 2, "leave --cause out"),
        (("--sweep", "--x=1,2", "--cause", "py-gc"), 2, "takes no cause"),
    ],
    ids=["no such cause", "no such cause of one's own", "twice", "a sweep"],
)
def test_bad_input_is_told(waiting: Campaign, words: tuple[str, ...], status: int, said: str) -> None:
    before = waiting.progress.read_bytes()
    assert said in waiting.run("propose", *words).expect(status).err
    assert waiting.progress.read_bytes() == before


def test_a_cause_of_an_ordinary_proposal(waiting: Campaign) -> None:
    answer = propose(
        waiting.folder,
        title="x",
        description="",
        method="",
        change=change_of("--set --lr=0.3"),
        cause="dl-storage",
    )
    assert answer.hypotheses[0].cause == "dl-storage"
    assert entries(waiting)[0].cause == "dl-storage"
    with pytest.raises(UsageError, match="the catalogue has no 'nothing-like-it'"):
        propose(waiting.folder, title="y", description="", method="", cause="nothing-like-it")


def test_code_for_a_cause_is_asked_for_once_also_at_the_moment_of_the_write(waiting: Campaign) -> None:
    waiting.config.write_text(waiting.config.read_text().replace(" --num_workers=0", ""))
    loaded = load(waiting.folder)
    made = proposal(loaded, case_of(loaded), case_of(loaded).catalogue.cause("dl-no-workers"), None)
    propose_from_catalogue(waiting.folder, "dl-no-workers")
    with pytest.raises(Duplicate, match="code for dl-no-workers is hypothesis 1 already"):
        add_once(loaded, made)
    assert len(entries(waiting)) == 1
