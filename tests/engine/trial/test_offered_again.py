"""A REJECTED beside the baseline's next run: it stands, or is offered again with the runs that it has."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.campaigns import Campaign, make_replay_campaign, record


def rejected(folder: Path, *, later: float) -> Campaign:
    """A flag that is REJECTED against 30 %, and another after whose trial the baseline shows `later`."""
    recordings = folder / "recordings"
    for number, util in ((1, 30.0), (2, 30.0), (6, later)):
        record(recordings, f"{number:04}-baseline-workload", util=util, rate=10)
    record(recordings, "0003-h1", util=29.0, rate=10)
    record(recordings, "0004-h2", util=75.0, rate=25)
    campaign = make_replay_campaign(folder / "repo", recordings)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    campaign.propose("--set --lr=0.3", "Another")
    assert campaign.json("next")["verdict"] == "REJECTED"
    assert campaign.runs()[-1] == "0003-h1"
    campaign.json("next")
    assert campaign.runs()[3:6] == ["0004-h2", "0005-h2", "0006-baseline-workload"]
    return campaign


def test_one_that_the_next_run_of_the_baseline_contradicts_is_offered_again(tmp_path: Path) -> None:
    campaign = rejected(tmp_path, later=8.0)
    answer = campaign.json("next")
    (said,) = [note for note in answer["notes"] if "the baseline's next run contradicts that" in note]
    assert said.startswith("hypothesis 1 was REJECTED")
    assert (answer["action"], answer["hypothesis"]) == ("tested", 1)
    used = json.loads((campaign.folder / "runs" / campaign.runs()[-1] / "verdict.json").read_text())["runs"]
    assert next(r["name"] for r in used if r["part"] == "trial") == "0003-h1"
    assert campaign.json("verify")["ok"] is True


def test_one_that_it_does_not_contradict_stands(tmp_path: Path) -> None:
    campaign = rejected(tmp_path, later=30.0)
    assert campaign.json("next", status=5)["action"] == "propose"
    assert campaign.statuses()[0] == "REJECTED"
    assert len(campaign.runs()) == 6


def test_another_record_of_the_baseline_contradicts_nothing(tmp_path: Path) -> None:
    campaign = rejected(tmp_path, later=8.0)
    campaign.run("baseline", "workload").expect(0)
    assert campaign.json("next", status=5)["action"] == "propose"
    assert campaign.statuses()[0] == "REJECTED"
