"""Git's own folders of worktrees: which are ours, also when they are half there, and which never."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import git, make_repository
from tests.support.repositories import began_with, change_in

from gpudebug.edges import git as snapshot
from gpudebug.edges import removal
from gpudebug.edges.git import admin
from gpudebug.edges.git.journal import WorktreeRecord

TOKEN, OTHER, COMMIT = "0123456789abcdef", "f" * 16, "c" * 40
ID = f"h1-{TOKEN}"
MAKING = WorktreeRecord("making", TOKEN, COMMIT, "/w/h1", ID)
READY = WorktreeRecord("ready", TOKEN, COMMIT, "/w/h1", ID)


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
OURS = {"gpudebug": json.dumps({"token": TOKEN, "path": "/w/h1"})}
AT = {"gitdir": "/w/h1/.git\n"}
CASES = {
    "begun": (ID, LOCKED, MAKING, True),
    "begun and empty": (ID, {}, MAKING, True),
    "further on": (ID, {**LOCKED, **AT, "HEAD": "c"}, MAKING, True),
    "marked": (ID, {**OURS, **AT, "HEAD": "c"}, READY, True),
    "marked, and moved": (ID, {**OURS, "gitdir": "/elsewhere/.git\n", "HEAD": "c"}, READY, True),
    "of another name": ("h1", {**LOCKED, **AT}, MAKING, False),
    "not marked": (ID, {**AT, "HEAD": "c"}, READY, False),
    "another's mark": (ID, {"gpudebug": json.dumps({"token": OTHER, "path": "/w/h1"}), **AT}, READY, False),
    "another's mark, in the making": (
        ID,
        {"gpudebug": json.dumps({"token": OTHER, "path": "/w/h1"}), **AT},
        MAKING,
        False,
    ),
    "a broken mark": (ID, {"gpudebug": "{", **AT}, READY, False),
    "a mark of another kind": (ID, {"gpudebug": "[]", **AT}, READY, False),
    "a mark without a token": (ID, {"gpudebug": '{"token": "", "path": "/w/h1"}', **AT}, READY, False),
}


@pytest.mark.parametrize("name, files, record, ours", CASES.values(), ids=CASES)
def test_whose_it_is(top: Path, name: str, files: dict[str, str], record: WorktreeRecord, ours: bool) -> None:
    made = folder(top, name, files)
    assert admin.proven(top / ".git", record) == (made if ours else None)


def test_its_identity_proves_it_when_its_mark_is_gone(top: Path) -> None:
    made = folder(top, ID, {"HEAD": "c"})
    found = removal.identity_of(made.stat())
    assert admin.proven(top / ".git", replace(READY, admin=found)) == made
    assert admin.proven(top / ".git", replace(READY, admin=found._replace(inode=1))) is None


def test_the_mark_is_read_again_and_is_no_matter_to_git(top: Path, tmp_path: Path) -> None:
    git(top, "worktree", "add", "--quiet", "--detach", str(tmp_path / "h1"))
    made = admin.folders(top / ".git")[0]
    assert admin.mark_of(made) is None
    path = str(tmp_path / "h1")
    admin.mark(made, replace(READY, path=path, made=removal.Identity(1, 2)), "h1")
    assert admin.mark_of(made) == admin.WorktreeMark(TOKEN, path, removal.Identity(1, 2), "h1")
    assert admin.path_of(made) == tmp_path / "h1"
    git(top, "worktree", "prune")
    assert git(tmp_path / "h1", "status", "--porcelain") == ""
    admin.disown(made)
    assert admin.mark_of(made) is None


def test_paths_that_newer_versions_write(top: Path) -> None:
    made = folder(top, "h1", {"gitdir": "../../../runs/h1/.git\n"})
    assert admin.path_of(made) == top / "runs" / "h1"


@pytest.mark.parametrize("name", ["h1", "h1-trial", "größe", "a b", "...", "x" * 200])
def test_the_name_of_gits_folder_is_one_that_git_keeps(name: str) -> None:
    made = admin.new_id(name, TOKEN)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*-" + TOKEN, made)
    assert len(made) <= 47


class TestOfTheFirstVersion:
    """0.1.0 kept its records in runs/: they are no word on anything. Git's own folder is, by its mark."""

    def made(self, top: Path) -> Path:
        path = top / "runs" / "worktrees" / "c" / "h1"
        git(top, "worktree", "add", "--quiet", "--detach", str(path))
        mark = json.dumps({"token": TOKEN, "path": str(path)})
        (top / ".git" / "worktrees" / "h1" / "gpudebug").write_text(mark)
        (top / "data").mkdir()
        (path / "data").symlink_to(top / "data")
        return path

    def test_a_worktree_that_git_knows_is_taken_on(self, top: Path) -> None:
        path = self.made(top)
        (path / "train.py").write_text("2\n")
        assert snapshot.repair(top, path.parent) == []
        assert began_with(path) == git(top, "rev-parse", "HEAD").strip()
        assert change_in(path, str(began_with(path))).files == ("train.py",)
        snapshot.remove_worktree(top, path)
        assert not path.exists()
        assert (top / ".git" / "worktrees" / "h1").exists() is False
        assert (top / "data").is_dir()

    @pytest.mark.parametrize("what", ["no .git file", "another's .git file", "another folder"])
    def test_what_is_not_that_worktree_stays(self, top: Path, what: str) -> None:
        path = self.made(top)
        if what == "another folder":
            path.rename(path.with_name("aside"))
            path.mkdir()
        elif what == "no .git file":
            (path / ".git").unlink()
        else:
            (path / ".git").write_text(f"gitdir: {top / '.git'}\n")
        (path / "mine.txt").write_text("mine")
        snapshot.repair(top, path.parent)
        snapshot.remove_worktree(top, path)
        assert (path / "mine.txt").read_text() == "mine"

    @pytest.mark.parametrize("state", ["making", "ready", "removing"])
    def test_its_records_are_no_permission(self, top: Path, state: str) -> None:
        path = top / "runs" / "worktrees" / "c" / "h1"
        path.mkdir(parents=True)
        (path / "mine.txt").write_text("mine")
        old = top / "runs" / "worktrees" / ".c"
        old.mkdir()
        for name in ("h1", "..", "!0"):
            (old / f"{name}.json").write_text(json.dumps({"state": state, "token": "", "commit": ""}))
        assert snapshot.repair(top, path.parent) == []
        assert snapshot.remove_worktree(top, path) == []
        assert (path / "mine.txt").read_text() == "mine"
        assert len(list(old.iterdir())) == 3
