"""Where a campaign lies."""

from __future__ import annotations

from pathlib import Path

from tests.support.campaigns import git, make_repository

from gpudebug.edges.store.root import CONFIG, RUN_NAME, find_root, private_folder


def test_the_nearest_folder_above_counts(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    (inner / "src").mkdir(parents=True)
    assert find_root(inner) is None
    for folder in (tmp_path / "outer", inner):
        (folder / CONFIG).write_text("")
        assert find_root(inner / "src") == folder


def test_a_worktree_of_a_campaign_is_the_campaign_s(tmp_path: Path) -> None:
    worktree = tmp_path / "runs" / "worktrees" / "h1"
    worktree.mkdir(parents=True)
    for folder in (tmp_path, worktree):
        (folder / CONFIG).write_text("")
    assert find_root(worktree) == tmp_path


def test_names_of_run_folders() -> None:
    for name in ("0001-baseline-workload", "1234567-h1"):
        assert RUN_NAME.match(name)
    for name in (
        "001-h1",
        "0001-",
        "0001-H",
        ".0001-h1.ab",
        "20261129-resnet",
        "85093418-ebe6-11f1-b338-02fc",
    ):
        assert not RUN_NAME.match(name)


def test_each_worktree_has_a_private_folder_of_its_own_in_gits_common_one(tmp_path: Path) -> None:
    assert private_folder(tmp_path).is_relative_to(tmp_path / "runs"), "without a repository"
    top = make_repository(tmp_path / "repo", {"sub/gpudebug.yaml": ""})
    git(top, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    roots = (top, top / "sub", tmp_path / "linked", tmp_path / "linked" / "sub")
    found = [private_folder(root) for root in roots]
    assert len({*found}) == 4
    assert {folder.parent for folder in found} == {top / ".git" / "gpudebug" / "folders"}
    (tmp_path / "moved").symlink_to(top)
    assert private_folder((tmp_path / "moved").resolve()) == found[0]
