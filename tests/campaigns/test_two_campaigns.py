"""Two campaigns in one repository at the same time: refs, worktrees and claims of each are its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.campaigns import (
    Campaign,
    commit_all,
    git,
    make_campaign,
    make_replay_campaign,
    record,
)
from tests.support.holders import holding
from tests.support.repositories import left_over

from gpudebug.edges import store
from gpudebug.edges.store import hostlocks

CODE = "CHANGE = 1\n"


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(tmp_path / "recordings", "0002-h1", util=60, rate=30)
    return tmp_path / "recordings"


def refs(campaign: Campaign) -> list[str]:
    """The campaigns that keep commits in the repository."""
    listed = git(campaign.folder, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split()
    return sorted({ref.split("/")[2] for ref in listed})


def begin(campaign: Campaign) -> Path:
    """Record the baseline and claim a hypothesis, whose worktree is named."""
    campaign.json("next")
    campaign.propose("--code")
    campaign.pin()
    return Path(campaign.json("next", status=5, env={"GPUDEBUG_SESSION": "same"})["worktree"])


def finish(campaign: Campaign, worktree: Path) -> None:
    with (worktree / "train.py").open("a") as f:
        f.write(CODE)
    answer = campaign.json("next", env={"GPUDEBUG_SESSION": "same"})
    assert (answer["hypothesis"], answer["verdict"]) == (1, "VALIDATED")


@pytest.mark.slow
def test_two_folders_of_one_repository(tmp_path: Path, recordings: Path) -> None:
    one = make_replay_campaign(tmp_path / "repo", recordings)
    two = Campaign(one.folder / "sub")
    two.folder.mkdir()
    for name in ("train.py", "gpudebug.yaml", ".gitignore"):
        (two.folder / name).write_bytes((one.folder / name).read_bytes())
    commit_all(one.folder)

    first, second = begin(one), begin(two)
    assert first != second
    assert second == two.folder / "runs" / "worktrees" / "test" / "h1" / "sub"
    assert len(refs(one)) == 2
    assert len(left_over(one.folder)) == len(left_over(two.folder)) == 1
    finish(one, first)
    assert two.statuses() == ["TESTING"]
    finish(two, second)
    assert left_over(one.folder) == left_over(two.folder) == []
    one.json("accept", "1")
    assert one.json("next", status=5)["action"] == "propose"
    assert two.json("next", status=5)["action"] == "propose"
    for campaign in (one, two):
        campaign.json("verify")


@pytest.mark.slow
def test_another_campaign_of_the_same_folder(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    first = begin(campaign)
    text = campaign.config.read_text()
    # The next effort has a file of its own, as `init` would name it.
    campaign.config.write_text(re.sub("campaign: test", "campaign: other\nprogress: progress/other.md", text))
    second = begin(campaign)
    assert first != second
    assert len(left_over(campaign.folder)) == 2
    assert len(refs(campaign)) == 2
    finish(campaign, second)
    campaign.config.write_text(text)
    assert campaign.statuses() == ["TESTING"]
    finish(campaign, first)
    campaign.json("verify")
    assert left_over(campaign.folder) == []


@pytest.mark.slow
def test_who_shares_the_cores_is_in_run_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hostlocks.VARIABLE, str(tmp_path / "locks"))
    other = {
        "path": "/other",
        "campaign": "other",
        "session": None,
        "since": "now",
        "command": "gpudebug next",
    }
    one = make_campaign(tmp_path / "repo", device="auto")
    env = {"CUDA_VISIBLE_DEVICES": "", hostlocks.VARIABLE: str(tmp_path / "locks")}

    def shared() -> object:
        assert one.json("baseline", env=env)["action"] == "recorded_baseline"
        (name,) = one.runs()[-1:]
        return json.loads((one.folder / "runs" / name / "run.json").read_text())["shared"]

    with holding(lambda: store.core_locks(0, other)):
        assert shared() == ["campaign other"]
    assert shared() == []
    assert one.json("verify")["ok"] is True
