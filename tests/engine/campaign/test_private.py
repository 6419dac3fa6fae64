"""Where a campaign keeps what is private to it."""

from __future__ import annotations

from pathlib import Path

from gpudebug.edges import git
from gpudebug.engine.campaign.private import campaign_folder


def test_each_campaign_of_each_work_tree_has_a_folder_of_its_own(tmp_path: Path) -> None:
    top = tmp_path / "repo"
    main = git.Address(top, top / ".git", top / ".git")
    linked = git.Address(tmp_path / "linked", top / ".git", top / ".git")
    found = [
        campaign_folder(top, "a", main).path,
        campaign_folder(top, "b", main).path,
        campaign_folder(top / "sub", "a", main).path,
        campaign_folder(linked.top, "a", linked).path,
    ]
    assert len(set(found)) == len(found)
    assert all(path.parent == top / ".git" / "gpudebug" / "campaigns" for path in found)


def test_a_repository_that_moved_keeps_its_folder(tmp_path: Path) -> None:
    one, other = (
        campaign_folder(top, "a", git.Address(top, top / ".git", top / ".git")).path.name
        for top in (tmp_path / "one", tmp_path / "other")
    )
    assert one == other
