"""Runs that git tracks are no evidence: whoever can push to a repository may have written them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, commit_all, copied, git, make_replay_campaign, record

from gpudebug.engine.campaign.load import load


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("solved")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=90, rate=45)
    made = make_replay_campaign(folder / "repo", folder / "recordings", config="target: 80\n")
    made.json("next")
    made.propose("--set --lr=0.2")
    assert made.json("next")["verdict"] == "VALIDATED"
    return made


@pytest.fixture
def pushed(solved: Campaign, tmp_path: Path) -> Campaign:
    """What somebody else pushed, with the runs of a verdict in it."""
    there = copied(solved, tmp_path / "there")
    git(there.folder, "add", "--force", "runs")
    commit_all(there.folder)
    return there


def test_a_clone_brings_no_verdict(pushed: Campaign, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(pushed.folder), "repo")
    clone = Campaign(tmp_path / "repo").pin()
    status = clone.json("status")
    (hypothesis,) = status["hypotheses"]
    assert (hypothesis["status"], hypothesis["verified"]) == ("VALIDATED", True)
    (doubt,) = hypothesis["doubts"]
    assert doubt.startswith(
        "brought along: git tracks runs/0001-baseline-workload, runs/0002-baseline-workload, "
    )
    assert "brought along" in clone.run("status").out
    assert "brought along" in status["baselines"]["workload"]["why"]
    assert status["next"]["action"] == "record_baseline"
    verified = clone.json("verify")
    assert verified["ok"] is None
    assert any("brought along" in line for line in verified["unchecked"])
    for words in (["accept", "1"], ["accept", "1", "--terms-differ"]):
        refused = clone.run(*words).expect(1).err
        assert "brought along" in refused
        assert "git rm -r --cached runs" in refused


def test_a_clone_brings_no_acceptance(pushed: Campaign, tmp_path: Path) -> None:
    """Without the record in git's folder its `Accepted` line is like one of a campaign of 0.1.0."""
    pushed.progress.write_text(
        pushed.text.replace("**Status**: VALIDATED\n", "**Status**: VALIDATED\n- **Accepted**: 1\n")
    )
    commit_all(pushed.folder)
    git(tmp_path, "clone", "--quiet", str(pushed.folder), "repo")
    clone = Campaign(tmp_path / "repo")
    found = load(clone.folder)
    assert found.entries.recorded != ()
    assert found.entries.accepted == ()
    assert found.setup.config.workload.argv() == load(pushed.folder).setup.config.workload.argv()
    clone.pin()
    assert load(clone.folder).entries.acceptances.entries == {}


def test_ones_own_count_again_when_git_tracks_them_no_more(pushed: Campaign) -> None:
    assert pushed.json("status")["hypotheses"][0]["doubts"] != []
    git(pushed.folder, "rm", "-r", "--quiet", "--cached", "runs")
    status = pushed.json("status")
    assert status["hypotheses"][0]["doubts"] == []
    assert status["next"]["action"] == "stop"
    assert pushed.json("verify")["ok"] is True


def test_a_link_that_a_clone_brings_is_brought_too(solved: Campaign, tmp_path: Path) -> None:
    campaign = copied(solved, tmp_path / "repo")
    run = campaign.folder / "runs" / "0003-h1"
    run.rename(campaign.folder / "data")
    run.symlink_to("../data")
    git(campaign.folder, "add", "--force", "runs/0003-h1", "data")
    assert (
        campaign.json("status")["hypotheses"][0]["doubts"]
        or not (campaign.json("status")["hypotheses"][0]["verified"])
    )
