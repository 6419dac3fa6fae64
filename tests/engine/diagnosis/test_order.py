"""The order that `next` and `diagnose` record, and what `status` shows of it."""

from __future__ import annotations

from pathlib import Path

from tests.support.campaigns import Campaign
from tests.support.commands import command

from gpudebug.core.change.intervention import from_options
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle.next import next_cycle
from gpudebug.engine.diagnosis.diagnose import diagnose
from gpudebug.engine.diagnosis.order import record_order, recorded_order
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.status.status import status


def kept(campaign: Campaign) -> Path:
    return campaign.private / "status" / "test" / "order.json"


def add(campaign: Campaign, title: str, change: str) -> None:
    propose(campaign.folder, title=title, description="", method="", change=from_options((change,)))


def test_next_records_what_follows_a_baseline(waiting: Campaign) -> None:
    told = status(waiting.folder)
    assert told.order.by == "gpudebug next"
    assert list(told.order.baseline) == ["0001-baseline-workload", "0002-baseline-workload"]
    assert 0 <= told.order.age_s < 600
    assert "dl-no-workers, " in told.next.why
    out = " ".join(command(waiting.folder, "status").out.split())
    assert "Order recorded by gpudebug next " in out
    assert " ago, from runs/0001-baseline-workload" in out


def test_status_shows_no_order_that_is_not_recorded(waiting: Campaign) -> None:
    kept(waiting).unlink()
    assert status(waiting.folder).order is None
    assert status(waiting.folder).next.why.endswith("no diagnosis is recorded yet: gpudebug diagnose")
    add(waiting, "One", "--x=1")
    add(waiting, "Two", "--num_workers=2")
    assert status(waiting.folder).next.why == (
        "hypothesis 1, the first in the file: no order is recorded yet: gpudebug diagnose"
    )
    diagnose(waiting.folder)
    told = status(waiting.folder)
    assert (told.order.by, told.next.hypothesis) == ("gpudebug diagnose", 2)
    assert next_cycle(waiting.folder, lambda _: None).hypothesis == 2


def test_a_person_chooses_what_is_tested(waiting: Campaign) -> None:
    add(waiting, "One", "--x=1")
    add(waiting, "Two", "--num_workers=2")
    refused = waiting.run("next", "1", env={"GPUDEBUG_SESSION": "a1"})
    assert refused.status != 0 and "choosing what is tested is for a person" in refused.err
    answer = waiting.json("next", "1")
    assert (answer["hypothesis"], answer["decided"]) == (1, "hypothesis 1 was chosen")
    decided = waiting.run("next", "1").expect(1)
    assert "it does not wait for a test" in decided.err
    assert waiting.json("next")["hypothesis"] == 2


def test_a_damaged_order_is_none(waiting: Campaign) -> None:
    for text in ("", "{", "[]", '{"when": 1}'):
        kept(waiting).write_text(text)
        assert recorded_order(load(waiting.folder).setup) is None
        assert status(waiting.folder).order is None


def test_an_order_in_another_unit_is_none(waiting: Campaign) -> None:
    text = waiting.config.read_text()
    waiting.config.write_text(text + "metric: steps_per_s\ncriteria: {success: 1.2x, failure: 1.1x}\n")
    assert recorded_order(load(waiting.folder).setup) is None


def test_a_folder_that_cannot_be_written_keeps_nobody_from_going_on(waiting: Campaign) -> None:
    kept(waiting).unlink()
    kept(waiting).mkdir()
    assert diagnose(waiting.folder).causes
    record_order(load(waiting.folder), "gpudebug next")
    assert kept(waiting).is_dir()
