"""Links in place of gpudebug's folders; what commands say of them is in the promises about files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import git

from gpudebug.core.errors import StoreError
from gpudebug.edges.store import Workspace
from gpudebug.engine.campaign.links import refuse_links


@pytest.fixture
def linked(tmp_path: Path) -> Workspace:
    """A repository whose runs/ is a link to a folder beside it, which git ignores."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "disk").mkdir()
    git(tmp_path / "repo", "init", "--quiet")
    (tmp_path / "repo" / ".gitignore").write_text("/runs\n")
    (tmp_path / "repo" / "runs").symlink_to("../disk")
    return Workspace(tmp_path / "repo")


def refused(workspace: Workspace, says: str) -> None:
    with pytest.raises(StoreError, match=says) as caught:
        refuse_links(workspace)
    assert caught.value.next


def test_a_link_that_only_its_owner_can_have_made_is_followed(linked: Workspace) -> None:
    refuse_links(linked)
    assert linked.new_run("a").path.is_dir()


def test_a_link_that_a_clone_may_have_brought_is_not(linked: Workspace) -> None:
    git(linked.root, "add", "--force", "runs")
    refused(linked, "git does not ignore")
    git(linked.root, "rm", "--quiet", "--cached", "runs")
    refuse_links(linked)
    (linked.root / ".gitignore").write_text("")
    refused(linked, "git does not ignore")


def test_a_link_that_leads_nowhere_or_to_a_file_is_not(linked: Workspace, tmp_path: Path) -> None:
    (tmp_path / "disk").rmdir()
    refused(linked, "leads nowhere")
    (tmp_path / "disk").write_text("")
    refused(linked, "not a folder of yours")


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a folder of another user, which only root may")
def test_a_link_to_another_users_folder_is_not(linked: Workspace, tmp_path: Path) -> None:
    os.chown(tmp_path / "disk", 65534, 65534)
    refused(linked, "not a folder of yours")
