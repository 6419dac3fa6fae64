"""What becomes of the worktrees of a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record

from gpudebug.edges import git
from gpudebug.engine.campaign import upkeep
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.worktrees import folder, worktree_for


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    made = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    made.json("next")
    made.add("### Hypothesis 1: By code\n- **Intervention**: --code\n- **Status**: REJECTED\n\n")
    return made


def test_what_was_written_without_a_need_for_it_becomes_a_patch(campaign: Campaign) -> None:
    loaded = load(campaign.folder)
    worktree = worktree_for(loaded.setup, loaded.code, 1)
    (worktree / "train.py").write_text("print('mine')\n")
    assert upkeep.tidy(loaded.setup, loaded.entries.document) == ["h1: not needed any more; it is removed"]
    assert not worktree.exists()
    assert "+print('mine')" in (campaign.folder / "hypotheses/patches/h1-by-code.patch").read_text()
    assert upkeep.kept_here(loaded.setup)[0] == []


def test_what_git_cannot_tell_of_stays(campaign: Campaign) -> None:
    loaded = load(campaign.folder)
    worktree = worktree_for(loaded.setup, loaded.code, 1)
    (worktree / "train.py").write_text("print('mine')\n")
    (index,) = campaign.folder.joinpath(".git/gpudebug/worktrees").glob("*/h1.index")
    index.write_bytes(b"junk")
    (told,) = upkeep.tidy(loaded.setup, loaded.entries.document)
    assert told == f"h1: git cannot list what was written in it, so {worktree} stays as it is"
    assert (worktree / "train.py").read_text() == "print('mine')\n"
    upkeep.end(loaded.setup, loaded.entries.document)
    assert worktree.exists()


def test_a_worktree_of_a_name_that_says_nothing_stays(campaign: Campaign) -> None:
    loaded = load(campaign.folder)
    commit = git.snapshot(loaded.setup.checkout.top, ref="refs/gpudebug/x/base", label="x", exclude=()).commit
    made = git.add_worktree(loaded.setup.checkout.top, folder(loaded.setup) / "mine", commit)
    assert upkeep.tidy(loaded.setup, loaded.entries.document) == [
        f"mine: git cannot list what was written in it, so {made.path} stays as it is"
    ]
    assert made.path.exists()


def test_those_of_runs_go(campaign: Campaign) -> None:
    loaded = load(campaign.folder)
    commit = git.snapshot(loaded.setup.checkout.top, ref="refs/gpudebug/x/base", label="x", exclude=()).commit
    for name in ("base", "h1-trial"):
        git.add_worktree(loaded.setup.checkout.top, folder(loaded.setup) / name, commit)
    assert len(upkeep.tidy(loaded.setup, loaded.entries.document)) == 2
    assert upkeep.kept_here(loaded.setup)[0] == []
