"""Worktrees of our own: made at a commit with links in, removed whole, and nobody else's touched."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository
from tests.support.repositories import (
    REF,
    began_with,
    change_in,
    left_over,
    lies,
    registered,
    repository,
    touched,
    users,
    worktrees,
)

from gpudebug.core.errors import GitError, StoreError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import journal


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def base_of(top: Path) -> str:
    return snapshot.snapshot(top, ref=REF, label="l").commit


def place(top: Path, name: str = "h1") -> Path:
    return top / "runs" / "worktrees" / "campaign" / name


def test_made_used_and_removed_under_any_name(hostile: Path) -> None:
    top = repository(hostile / "repo")
    commit, before = base_of(top), users(top)
    made = snapshot.add_worktree(top, place(top), commit, links=[".venv"], checkout=top)
    assert made == snapshot.Worktree(place(top), (), (".venv",))
    expected = {k: v for k, v in lies(top).items() if not k.startswith((".venv", "runs/", "train.log"))}
    assert lies(made.path) == {**expected, ".venv": ("link", str(top / ".venv"))}
    assert git(made.path, "status", "--porcelain") == ""
    assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD\n"
    assert began_with(made.path) == commit
    assert users(top) == before
    again = snapshot.add_worktree(top, place(top), commit, links=[".venv"], checkout=top)
    assert again == made
    snapshot.remove_worktree(top, made.path)
    assert users(top) == before
    assert (registered(top), left_over(top)) == ([], [])
    assert (top / ".venv" / "bin" / "python").read_text() == "#!"
    snapshot.remove_worktree(top, made.path)
    assert began_with(made.path) is None


def test_touched_is_what_differs_and_is_not_linked(hostile: Path) -> None:
    top = repository(hostile / "repo")
    (top / "data set").mkdir()
    (top / "data set" / "x.bin").write_text("x")
    path = snapshot.add_worktree(top, place(top), base_of(top), links=[".venv", "data set"]).path
    assert not touched(path)
    (path / "new.txt").write_text("new\n")
    assert touched(path)
    git(path, "add", "new.txt")
    commit_all(path)
    assert touched(path)
    git(path, "reset", "--quiet", "--hard", "HEAD^")
    assert not touched(path)
    (path / "train.py").write_text("a = 7\n")
    assert touched(path)
    (path / ".git").write_text("gitdir: nowhere\n")
    assert touched(path)
    assert not touched(place(top, "none"))


def test_names_that_are_taken_are_no_matter(top: Path, tmp_path: Path) -> None:
    """Two campaigns have an h1, and the user has a worktree of that name."""
    commit = base_of(top)
    git(top, "worktree", "add", "--quiet", "--detach", str(tmp_path / "h1"))
    paths = [place(top), top / "runs" / "worktrees" / "other" / "h1"]
    for path in paths:
        snapshot.add_worktree(top, path, commit)
    assert worktrees(top) == [str(p) for p in (tmp_path / "h1", *paths)]
    for path in paths:
        snapshot.remove_worktree(top, path)
    assert worktrees(top) == [str(tmp_path / "h1")]
    assert (tmp_path / "h1" / "train.py").exists()


@pytest.mark.parametrize("linked", ["runs", "runs/worktrees", "runs/worktrees/campaign"])
def test_links_on_the_way_are_refused(top: Path, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere" / "worktrees" / "campaign" / "h1"
    elsewhere.mkdir(parents=True)
    (elsewhere / "mine.txt").write_text("mine")
    commit = base_of(top)
    (top / linked).parent.mkdir(parents=True, exist_ok=True)
    (top / linked).symlink_to(elsewhere.parents[2 - linked.count("/")])
    before = lies(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link or a file") as caught:
        snapshot.add_worktree(top, place(top), commit)
    assert caught.value.file == str(top / linked)
    assert caught.value.next
    snapshot.remove_worktree(top, place(top))
    assert lies(tmp_path / "elsewhere") == before
    assert registered(top) == []


def test_a_folder_that_was_made_a_link_afterwards_is_left(top: Path, tmp_path: Path) -> None:
    """Also where it is swapped while the lock of the worktree is waited for."""
    commit = base_of(top)
    made = snapshot.add_worktree(top, place(top), commit)
    (tmp_path / "victim" / "h1").mkdir(parents=True)
    (tmp_path / "victim" / "h1" / "thesis").write_text("mine")
    with ThreadPoolExecutor() as pool:
        with journal.held(top / ".git", place(top)):
            removing = pool.submit(snapshot.remove_worktree, top, place(top))
            time.sleep(0.2)
            made.path.parent.rename(top / "runs" / "aside")
            made.path.parent.symlink_to(tmp_path / "victim")
        assert isinstance(removing.exception(), StoreError)
    assert (tmp_path / "victim" / "h1" / "thesis").read_text() == "mine"
    made.path.parent.unlink()
    (tmp_path / "victim").rename(made.path.parent)
    left = snapshot.remove_worktree(top, place(top))
    assert left == [
        f"h1: {made.path} is not the folder that gpudebug made (device, inode or birth differ): it stays"
    ]
    assert (made.path / "thesis").read_text() == "mine"
    assert registered(top) == []


class TestLinks:
    def test_a_link_out_of_the_repository_and_one_that_is_not_there(self, top: Path, tmp_path: Path) -> None:
        (tmp_path / "store" / "a").mkdir(parents=True)
        (top / "outside").symlink_to(tmp_path / "store")
        made = snapshot.add_worktree(
            top, place(top), base_of(top), links=["outside", "nowhere", ".venv/bin/"], checkout=top
        )
        assert made.notes == ("worktree.link: nowhere is missing, so it is not linked",)
        # The link to the store is untracked and small: it is in the base itself.
        assert made.linked == (".venv/bin",)
        assert (made.path / "outside" / "a").is_dir()

    def test_a_folder_that_git_tracks_in_part_is_filled_up(self, top: Path) -> None:
        (top / "data" / "big").mkdir()
        (top / "data" / "big" / "x").write_bytes(bytes(2**20 + 1))
        (top / "pkg" / "deep" / "cache.log").write_text("ignored")
        made = snapshot.add_worktree(
            top, place(top), base_of(top), links=["data", "pkg", "train.py"], checkout=top
        )
        assert set(made.linked) == {"data/big", "pkg/deep/cache.log"}
        assert made.notes == ("worktree.link: train.py is tracked by git: the worktree has its own copy",)
        assert not (made.path / "data" / "keep.txt").is_symlink()
        snapshot.remove_worktree(top, made.path)
        assert (top / "data" / "big" / "x").exists()

    def test_they_are_relative_to_the_campaigns_folder(self, top: Path) -> None:
        (top / "pkg" / "store.log").mkdir()
        made = snapshot.add_worktree(top, place(top), base_of(top), links=["store.log"], checkout=top / "pkg")
        assert made.linked == ("pkg/store.log",)
        assert os.readlink(made.path / "pkg" / "store.log") == str(top / "pkg" / "store.log")

    @pytest.mark.parametrize(
        "name", ["../x", "/etc", ".", "", ".git", ".git/hooks", "a/../../x", "runs", "runs/x", "out/file"]
    )
    def test_one_that_may_not_be_is_refused_and_nothing_is_left(
        self, top: Path, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "file").touch()
        (top / "out").symlink_to("../elsewhere")
        with pytest.raises(GitError, match=r"worktree\.link") as caught:
            snapshot.add_worktree(top, place(top), base_of(top), links=[name], checkout=top)
        assert caught.value.next
        assert registered(top) == []
        assert os.listdir(place(top).parent) == []


class TestSubmodules:
    @pytest.fixture
    def outer(self, tmp_path: Path) -> Path:
        """A repository with two submodules, one of which is not checked out."""
        make_repository(tmp_path / "lib", {"lib.py": "x = 1\n"})
        outer = make_repository(tmp_path / "outer", {"train.py": "1\n"})
        for name in ("libs/here", "libs/empty"):
            words = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
            git(outer, *words, str(tmp_path / "lib"), name)
        commit_all(outer)
        git(outer, "submodule", "--quiet", "deinit", "--force", "libs/empty")
        return outer

    def test_they_are_linked_and_no_part_of_a_change(self, outer: Path) -> None:
        (outer / "libs" / "here" / "lib.py").write_text("x = 2\n")
        before, commit = users(outer), base_of(outer)
        made = snapshot.add_worktree(outer, place(outer), commit)
        assert made.linked == ("libs/here",)
        assert (made.path / "libs" / "here" / "lib.py").read_text() == "x = 2\n"
        assert list((made.path / "libs" / "empty").iterdir()) == []
        assert change_in(made.path, commit).patch == b""
        seen = snapshot.fingerprint(outer, made.linked)
        (made.path / "libs" / "here" / "lib.py").write_text("x = 30\n")
        (made.path / "train.py").write_text("2\n")
        assert change_in(made.path, commit).files == ("train.py",)
        assert snapshot.linked_changes(outer, made.linked, seen) == ["libs/here/lib.py"]
        (outer / "libs" / "here" / "lib.py").write_text("x = 2\n")
        snapshot.remove_worktree(outer, made.path)
        assert users(outer).keys() == before.keys()
        assert snapshot.difference(outer, commit, base_of(outer)) == b""

    def test_a_submodule_can_itself_be_the_checkout(self, outer: Path) -> None:
        inner = outer / "libs" / "here"
        (inner / "lib.py").write_text("x = 3\n")
        commit = base_of(inner)
        made = snapshot.add_worktree(inner, place(inner), commit)
        assert (made.path / "lib.py").read_text() == "x = 3\n"
        (made.path / "lib.py").write_text("x = 4\n")
        assert change_in(made.path, commit).files == ("lib.py",)
        snapshot.remove_worktree(inner, made.path)


def test_a_worktree_of_the_users_can_be_the_checkout(top: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git(top, "worktree", "add", "--quiet", "-b", "topic", str(second))
    (second / "train.py").write_text("mine\n")
    before = users(top), users(second)
    commit = base_of(second)
    made = snapshot.add_worktree(second, place(second), commit)
    assert (made.path / "train.py").read_text() == "mine\n"
    snapshot.remove_worktree(second, made.path)
    assert (users(top), users(second)) == before
    assert worktrees(top) == [str(second)]


class TestInTheWay:
    def test_somebody_elses_folder_keeps_its_name(self, top: Path) -> None:
        place(top).mkdir(parents=True)
        (place(top) / "notes.txt").write_text("mine")
        commit = base_of(top)
        assert snapshot.remove_worktree(top, place(top)) == []
        for _ in range(2):
            made = snapshot.add_worktree(top, place(top), commit)
            assert made.path == place(top, "h1-2")
            assert made.notes == (
                f"{place(top)} is not gpudebug's: it was left there, and the worktree is {made.path}",
            )
        assert (began_with(place(top)), touched(place(top))) == (commit, False)
        (made.path / "train.py").write_text("x\n")
        assert change_in(place(top), commit).files == ("train.py",)
        snapshot.remove_worktree(top, place(top))
        assert left_over(top) == ["runs/worktrees/campaign/h1"]
        assert (place(top) / "notes.txt").read_text() == "mine"

    def test_a_worktree_of_the_users_is_never_removed(self, top: Path) -> None:
        git(top, "worktree", "add", "--quiet", "--detach", str(place(top)))
        assert snapshot.remove_worktree(top, place(top)) == []
        assert snapshot.repair(top, place(top).parent) == []
        assert worktrees(top) == [str(place(top))]

    def test_a_worktree_of_the_users_that_is_registered_but_gone(self, top: Path) -> None:
        git(top, "worktree", "add", "--quiet", "--detach", str(place(top)))
        before = users(top), registered(top)
        place(top).rename(top / "runs" / "elsewhere")
        assert snapshot.add_worktree(top, place(top), base_of(top)).path == place(top, "h1-2")
        snapshot.remove_worktree(top, place(top))
        assert (users(top), registered(top)) == before

    def test_ours_at_another_commit(self, top: Path) -> None:
        snapshot.add_worktree(top, place(top), base_of(top))
        with pytest.raises(GitError, match="another commit"):
            snapshot.add_worktree(top, place(top), git(top, "rev-parse", "HEAD").strip())

    def test_no_such_commit(self, top: Path) -> None:
        with pytest.raises(GitError, match="0000000") as caught:
            snapshot.add_worktree(top, place(top), "0" * 40)
        assert caught.value.next
        assert registered(top) == []
        assert snapshot.repair(top, place(top).parent) == []

    def test_a_checkout_that_needs_a_filter_which_fails(self, top: Path) -> None:
        """A repository where no worktree can be made: one line, and nothing is left."""
        (top / ".gitattributes").write_text("*.bin filter=vault\n")
        git(top, "config", "filter.vault.smudge", "false")
        git(top, "config", "filter.vault.clean", "cat")
        git(top, "config", "filter.vault.required", "true")
        commit = base_of(top)
        with pytest.raises(GitError, match=r"smudge filter vault failed") as caught:
            snapshot.add_worktree(top, place(top), commit)
        assert caught.value.next
        assert registered(top) == []
        assert not place(top).exists()


def test_folders_that_may_not_be_written_go_too(top: Path) -> None:
    made = snapshot.add_worktree(top, place(top), base_of(top), links=[".venv"], checkout=top)
    (made.path / "pkg" / "deep").chmod(0o500)
    (made.path / "pkg").chmod(0o500)
    snapshot.remove_worktree(top, made.path)
    assert not made.path.exists()
    assert (top / ".venv" / "bin" / "python").exists()


def test_a_lock_that_git_could_not_take_away_blocks_nobody(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, real = base_of(top), shutil.which("git")
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\n{real} "$@"; status=$?\n'
        'case "$*" in *"reset --hard"*)\n'
        f'for d in {top}/.git/worktrees/*/; do touch "$d/HEAD.lock"; done;; esac\n'
        "exit $status\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    made = snapshot.add_worktree(top, place(top), commit)
    assert list(top.glob(".git/worktrees/*/*.lock")) == []
    git(made.path, "checkout", "--quiet", "--detach", "HEAD")


def test_the_lock_that_a_killed_removal_left_goes_with_the_next(top: Path) -> None:
    made = snapshot.add_worktree(top, place(top), base_of(top))
    common = top / ".git"
    file = journal.file_of(common, place(top))
    snapshot.remove_worktree(top, made.path)
    (file.parent / "h1.lock").touch()
    snapshot.remove_worktree(top, made.path)
    assert list(file.parent.iterdir()) == []
