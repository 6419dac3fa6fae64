"""Git's own folders of worktrees: which are ours, also when they are half there, and which never."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import git, make_repository

from gpudebug.core.errors import GitError
from gpudebug.edges.snapshot import admin
from gpudebug.edges.snapshot.journal import Record
from gpudebug.edges.snapshot.repository import Repository

MAKING = Record("making", "token", "c", before=("h1",))
READY = Record("ready", "token", "c")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"train.py": "1\n"})


def folder(top: Path, name: str, files: dict[str, str]) -> Path:
    made = top / ".git" / "worktrees" / name
    made.mkdir(parents=True)
    for file, text in files.items():
        (made / file).write_text(text)
    return made


LOCKED = {"locked": "initializing"}
OURS = {"gpudebug": '{"token": "token", "path": "/w/h1"}'}
AT = {"gitdir": "/w/h1/.git\n"}
CASES = {
    "begun": ("h11", LOCKED, MAKING, True),
    "begun and empty": ("h11", {}, MAKING, True),
    "begun, its path not written yet": ("h11", {**LOCKED, "gitdir": ""}, MAKING, True),
    "further on": ("h11", {**LOCKED, **AT, "HEAD": "c"}, MAKING, True),
    "of any name, by its path": ("anything", {**AT, "HEAD": "c"}, MAKING, True),
    "marked": ("h11", {**OURS, **AT, "HEAD": "c"}, READY, True),
    "marked, and moved": ("h11", {**OURS, "gitdir": "/elsewhere/.git\n", "HEAD": "c"}, READY, True),
    "there before": ("h1", {**LOCKED, **AT}, MAKING, False),
    "of another name": ("h2x", LOCKED, MAKING, False),
    "of another path": ("h11", {"gitdir": "/w/other/.git\n", "HEAD": "c"}, MAKING, False),
    "with more in it": ("h11", {**LOCKED, "HEAD": "c"}, MAKING, False),
    "not marked": ("h1", {**AT, "HEAD": "c"}, READY, False),
    "another's mark": ("h1", {"gpudebug": '{"token": "other"}', **AT}, READY, False),
    "a broken mark": ("h1", {"gpudebug": "{", **AT}, READY, False),
    "a mark of another kind": ("h1", {"gpudebug": "[]", **AT}, READY, False),
}


@pytest.mark.parametrize("name, files, record, ours", CASES.values(), ids=CASES)
def test_whose_it_is(top: Path, name: str, files: dict[str, str], record: Record, ours: bool) -> None:
    made = folder(top, name, files)
    found = admin.of(Repository(top), Path("/w/h1"), record)
    assert found == (made if ours else None)


def test_the_mark_is_read_again_and_is_no_matter_to_git(top: Path, tmp_path: Path) -> None:
    git(top, "worktree", "add", "--quiet", "--detach", str(tmp_path / "h1"))
    made = admin.folders(Repository(top))[0]
    assert admin.token_of(made) is None
    admin.mark(made, "token", tmp_path / "h1")
    assert (admin.token_of(made), admin.path_of(made)) == ("token", tmp_path / "h1")
    git(top, "worktree", "prune")
    assert git(tmp_path / "h1", "status", "--porcelain") == ""


def test_paths_that_newer_versions_write(top: Path) -> None:
    made = folder(top, "h1", {"gitdir": "../../../runs/h1/.git\n"})
    assert admin.path_of(made) == top / "runs" / "h1"


def test_no_link_is_followed_when_a_tree_goes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").touch()
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "link").symlink_to(tmp_path / "data")
    (tmp_path / "tree" / "file").symlink_to(tmp_path / "data" / "x")
    (tmp_path / "tree" / "deep").chmod(0o500)
    admin.remove_tree(tmp_path / "tree")
    admin.remove_tree(tmp_path / "tree")
    assert (tmp_path / "data" / "x").exists()
    assert not (tmp_path / "tree").exists()
    (tmp_path / "tree").symlink_to("data")
    with pytest.raises(GitError, match="a link stands where"):
        admin.remove_tree(tmp_path / "tree")
    assert (tmp_path / "data" / "x").exists()
