"""The accepted state measured again: kept, regressed, or not to be told."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record

CRASH: dict[str, Any] = {
    "log": "step 1/9 loss 2.0\nTraceback (most recent call last):\nValueError: bad\n",
    "seconds": 3,
    "exit_status": 1,
}


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A flag that made 60 % of 20 % is accepted and was measured in turn."""
    folder = tmp_path_factory.mktemp("check")
    recordings = folder / "recordings"
    for number, role, util in ((1, "baseline-workload", 20), (4, "h1", 60), (5, "original", 20)):
        record(recordings, f"{number:04}-{role}", util=util, rate=util / 2, seconds=40)
    # Relative, so that a copy of both has recordings of its own.
    made = make_replay_campaign(folder / "repo", Path("../recordings"))
    made.run("check").expect(1)
    made.propose("--set --lr=0.2")
    made.json("next")
    made.json("next")
    made.json("accept", "1")
    record(recordings, "0006-baseline-workload", util=60, rate=30, seconds=40)
    made.json("baseline", "workload")
    return made


@pytest.fixture
def campaign(accepted: Campaign, tmp_path: Path) -> Campaign:
    """The same with recordings of its own, which have no run of `check` yet."""
    copied(Campaign(accepted.folder.parent), tmp_path / "all")
    made = Campaign(tmp_path / "all" / "repo")
    made.run("settings", "--accept").expect(0)
    return made


def runs_at(campaign: Campaign, util: float, **more: Any) -> None:
    record(
        campaign.folder.parent / "recordings",
        "0009-check",
        **{"util": util, "rate": util / 2, "seconds": 40, **more},
    )


def test_a_gain_that_is_there_is_kept_and_the_campaign_is_as_it_was(campaign: Campaign) -> None:
    runs_at(campaign, 58)
    before = campaign.json("status")
    answer = campaign.json("check")
    assert (answer["result"], answer["paired"], answer["of"][:3]) == ("kept", True, "all")
    assert answer["delta"]["value"] == pytest.approx(38, abs=1)
    assert answer["expected"]["value"] == pytest.approx(40, abs=1)
    after = campaign.json("status")
    assert [after[key] for key in ("next", "budget", "together")] == [
        before[key] for key in ("next", "budget", "together")
    ]
    assert after["baselines"]["workload"]["valid"]
    assert campaign.json("verify")["ok"] is True


def test_a_session_measures_nothing_by_it(campaign: Campaign) -> None:
    campaign.pin()
    runs_at(campaign, 58)
    before = sorted(path.name for path in (campaign.folder / "runs").iterdir())
    error = campaign.json("check", status=1, env={"GPUDEBUG_SESSION": "a"})["error"]
    assert "is for a person, and this is session a" in error["message"]
    assert error["next"].startswith("gpudebug status")
    assert sorted(path.name for path in (campaign.folder / "runs").iterdir()) == before


def test_a_regression_is_confirmed_by_more_runs_and_is_exit_status_1(campaign: Campaign) -> None:
    runs_at(campaign, 25)
    answer = campaign.json("check", status=1)
    assert answer["result"] == "regressed" and "less, beyond both intervals" in answer["why"]
    assert (len(answer["runs_before"]), len(answer["runs_after"])) == (3, 3)
    assert campaign.run("check").expect(1).out.startswith("REGRESSED: the gain is +5.")


def test_an_accepted_state_that_crashes_is_an_error(campaign: Campaign) -> None:
    runs_at(campaign, 25, **CRASH)
    assert "the accepted state itself does not complete: CRASHED" in campaign.run("check").expect(1).err


def test_a_change_that_the_command_has_by_now_is_compared_with_the_recorded_baseline(
    campaign: Campaign,
) -> None:
    runs_at(campaign, 59)
    campaign.config.write_text(campaign.config.read_text().replace("--lr=0.1", "--lr=0.2"))
    campaign.run("settings", "--accept").expect(0)
    answer = campaign.json("check")
    assert (answer["result"], answer["paired"], answer["expected"]) == ("kept", False, None)
    assert "hypothesis 1 is part of gpudebug.yaml or the checkout now" in answer["notes"][0]


def test_nothing_accepted_and_a_clone_are_told_apart(recorded: Campaign, campaign: Campaign) -> None:
    assert "nothing is accepted yet" in recorded.run("check").expect(1).err
    shutil.rmtree(campaign.folder / "runs")
    assert "what was accepted has no runs here" in campaign.run("check").expect(1).err
