"""After an `accept` the workload without what was accepted is run in turn with the new baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record

from gpudebug.engine.trial.original import Originals

CRASH = "step 1/9 loss 2.0\nTraceback (most recent call last):\nValueError: bad shape\n"
IN_TURN = ["original", "baseline-workload", "baseline-workload", "original"]


def make(folder: Path, *, now: float, original: float | None, **more: Any) -> Campaign:
    """A flag that made 20 % to 60 % in its trial is accepted; then the sides show `now` and `original`."""
    recordings = folder / "recordings"
    for number in (1, 2, 3):
        record(recordings, f"{number:04}-baseline-workload", util=20, rate=10)
    record(recordings, "0004-h1", util=60, rate=30)
    record(recordings, "0009-baseline-workload", util=now, rate=now / 2)
    if original is not None:
        record(recordings, "0005-original", **{"util": original, "rate": original / 2, **more})
    made = make_replay_campaign(folder / "repo", recordings)
    made.propose("--set --lr=0.2")
    made.json("next")
    made.json("next")
    made.json("accept", "1")
    return made


def roles(campaign: Campaign) -> list[str]:
    after = [name for name in campaign.runs() if int(name[:4]) > 7]
    return [name.partition("-")[2] for name in after]


def test_both_sides_are_run_in_turn_and_agree_with_the_trial(tmp_path: Path) -> None:
    campaign = make(tmp_path, now=60, original=20)
    answer = campaign.json("baseline", "workload")
    assert roles(campaign) == IN_TURN
    assert any("as many without the accepted changes, in turn" in note for note in answer["notes"])
    combined = campaign.json("export")["combined"]
    assert (combined["paired"], combined["agrees"], combined["notes"]) == (True, True, [])
    assert combined["before"] + combined["delta"]["value"] == pytest.approx(combined["after"])
    runs = campaign.folder / "runs"
    keys = {json.loads((runs / n / "run.json").read_text())["paired"] for n in campaign.runs()[7:]}
    assert len(keys) == 1 and None not in keys
    assert campaign.json("status")["baselines"]["workload"]["valid"]
    assert campaign.json("verify")["ok"] is True
    status = campaign.json("status")["together"]
    assert (status["text"], status["paired"], status["agrees"]) == (combined["text"], True, True)
    log = runs / "0008-original" / "train.log"
    log.write_text(log.read_text() + "step 99/9 loss 0.1\n")
    problems = campaign.json("verify", status=1)["problems"]
    assert {p["run"] for p in problems} == {"0008-original"} and problems[0]["field"] == "train.log"


def test_a_contradiction_is_said_wherever_the_figure_is(tmp_path: Path) -> None:
    campaign = make(tmp_path, now=97, original=20)
    campaign.json("baseline", "workload")
    assert roles(campaign) == IN_TURN
    combined = campaign.json("export")["combined"]
    assert combined["agrees"] is False
    (note,) = combined["notes"]
    assert note.startswith("hypothesis 1 gained +") and "these contradict each other" in note
    readme = (campaign.folder / "runs" / "export" / "README.md").read_text()
    assert "contradict each other" in readme


@pytest.mark.parametrize("fault", ["crash", "not recorded"])
def test_a_side_that_cannot_run_leaves_the_baseline_and_an_unknown(tmp_path: Path, fault: str) -> None:
    crash = {"log": CRASH, "seconds": 3, "exit_status": 1}
    campaign = make(tmp_path, now=60, original=20 if fault == "crash" else None, **crash)
    answer = campaign.json("baseline", "workload")
    (why,) = [n for n in answer["notes"] if n.startswith("what the accepted changes are worth together")]
    assert (
        "does not complete: CRASHED" in why if fault == "crash" else "no run of original was recorded" in why
    )
    assert campaign.json("status")["baselines"]["workload"]["valid"]
    assert "were not run in turn" in campaign.json("export")["combined"]["why"]


def test_what_gpudebug_yaml_has_by_now_is_not_run_without(tmp_path: Path) -> None:
    campaign = make(tmp_path, now=60, original=20)
    campaign.config.write_text(campaign.config.read_text().replace("--lr=0.1", "--lr=0.2"))
    campaign.run("settings", "--accept").expect(0)
    campaign.json("baseline", "workload")
    assert roles(campaign) == ["baseline-workload"] * 2
    why = campaign.json("export")["combined"]["why"]
    assert why == "hypothesis 1 is part of gpudebug.yaml now, so it cannot be switched off to compare"


def test_the_sides_begin_in_turn() -> None:
    sides, made = Originals(None, None, None, None), 0  # type: ignore[arg-type]
    order = ""
    while len(order) < 8:
        if sides.turn(made):
            sides.made.append(None)  # type: ignore[arg-type]
            order += "A"
        else:
            made += 1
            order += "B"
    assert order == "ABBAABBA"
    sides.ended = "it crashed"
    assert not sides.turn(9)
