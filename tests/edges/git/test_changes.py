"""What somebody changed in a worktree, however they went about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git
from tests.support.repositories import REF, change_in, lies, repository, touched, users

from gpudebug.core.change import patches
from gpudebug.core.errors import GitError
from gpudebug.edges import git as snapshot


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


@pytest.fixture
def commit(top: Path) -> str:
    return snapshot.snapshot(top, ref=REF, label="l").commit


@pytest.fixture
def worktree(top: Path, commit: str) -> Path:
    path = top / "runs" / "worktrees" / "campaign" / "h1"
    return snapshot.add_worktree(top, path, commit, links=[".venv"], checkout=top).path


def write(worktree: Path) -> None:
    (worktree / "train.py").write_text("a = 1\nb = 20\nc = 4\n")
    (worktree / "pkg" / "model.py").unlink()
    (worktree / "fresh.py").write_text("f = 1\n")


FILES = ("fresh.py", "pkg/model.py", "train.py")


def staged(worktree: Path) -> None:
    git(worktree, "add", "--all")


def committed(worktree: Path) -> None:
    commit_all(worktree, "Fix")
    (worktree / "train.py").write_text((worktree / "train.py").read_text())


def on_a_branch(worktree: Path) -> None:
    git(worktree, "checkout", "--quiet", "-b", "fix")
    commit_all(worktree)


def out_of_the_index(worktree: Path) -> None:
    git(worktree, "rm", "-r", "--quiet", "--cached", ".")


def without_index(worktree: Path) -> None:
    (worktree / ".git" / "index").unlink()


def broken_index(worktree: Path) -> None:
    (worktree / ".git" / "index").write_bytes(b"DIRC nonsense")


def link_replaced(worktree: Path) -> None:
    (worktree / ".venv").unlink()
    (worktree / ".venv").mkdir()
    (worktree / ".venv" / "x.py").write_text("x")


def test_its_own_repository_is_not_read(worktree: Path, commit: str, tmp_path: Path) -> None:
    """Written anew it could lead to the checkout's own index, or to a folder whose filters run programs."""
    shutil.rmtree(worktree / ".git")
    assert change_in(worktree, commit).files == ()
    (worktree / "train.py").write_text("changed\n")
    assert change_in(worktree, commit).files == ("train.py",)
    git(tmp_path, "init", "--quiet", "fake")
    git(tmp_path / "fake", "config", "filter.evil.clean", f"touch {tmp_path / 'ran'}; cat")
    (tmp_path / "fake" / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (worktree / ".git").write_text(f"gitdir: {tmp_path / 'fake' / '.git'}\n")
    assert change_in(worktree, commit).files == ("train.py",)
    assert touched(worktree)
    assert not (tmp_path / "ran").exists()


def test_without_its_record_nothing_is_told(worktree: Path, commit: str) -> None:
    shutil.rmtree(worktree.parents[3] / ".git" / "gpudebug")
    with pytest.raises(GitError, match="not a git worktree") as caught:
        change_in(worktree, commit)
    assert caught.value.next
    assert not touched(worktree)


@pytest.mark.parametrize(
    "then",
    [
        lambda worktree: None,
        staged,
        committed,
        on_a_branch,
        out_of_the_index,
        without_index,
        broken_index,
        link_replaced,
    ],
)
def test_the_files_count_as_they_lie(
    top: Path, worktree: Path, commit: str, then: Callable[[Path], None]
) -> None:
    write(worktree)
    then(worktree)
    before = users(worktree), lies(top)
    change = change_in(worktree, commit)
    assert (users(worktree), lies(top)) == before
    assert change.files == FILES
    assert [each.path for each in change.left_out] == ([".venv"] if then is link_replaced else [])
    assert patches.read(change.patch, "p").paths == FILES
    made = snapshot.with_patch(top, commit, change.patch, label="l", file="p")
    assert snapshot.difference(top, commit, made.commit) == change.patch
    other = snapshot.add_worktree(top, worktree.with_name("h1-trial"), made.commit).path
    expected = {k: v for k, v in lies(worktree).items() if not k.startswith(".venv")}
    assert lies(other) == expected


def test_nothing_changed_is_no_patch(worktree: Path, commit: str) -> None:
    os.utime(worktree / "train.py", (1, 1))
    (worktree / ".venv" / "bin" / "new").write_text("in the checkout, really")
    assert change_in(worktree, commit) == snapshot.WorktreeChange(b"", (), ())


def test_what_is_not_part_of_it_is_named(worktree: Path, commit: str) -> None:
    (worktree / "out.log").write_text("ignored")
    (worktree / "big.bin").write_bytes(bytes(2**20 + 1))
    (worktree / "hf_token").write_text("hf_x")
    (worktree / "pkg" / "__pycache__").mkdir()
    (worktree / "pkg" / "__pycache__" / "model.log").write_text("x")
    (worktree / ".pytest_cache").mkdir()
    (worktree / ".pytest_cache" / "x.log").write_text("x")
    change = change_in(worktree, commit)
    assert dict(change.left_out) == {
        "big.bin": "larger than 1 MB (1.0 MB)",
        "hf_token": "by its name it holds a secret",
        "out.log": "git ignores it",
    }
    assert change.files == ()


def test_against_another_base_it_is_the_whole_difference(top: Path, worktree: Path) -> None:
    """The worktree began at the base with the user's changes; against HEAD these are in it too."""
    change = change_in(worktree, git(top, "rev-parse", "HEAD").strip())
    assert change.files == ("new.py", "pkg/old.py", "pkg/staged.py", "train.py")


def test_a_copied_repository_minds_its_own_worktrees(top: Path, worktree: Path, commit: str) -> None:
    """git's files hold absolute paths: what is done in the copy must not reach into the original. What was
    copied is not the folder that gpudebug made: it stays, and the next worktree has another name."""
    copy = top.with_name("copy")
    shutil.copytree(top, copy, symlinks=True)
    path = copy / worktree.relative_to(top)
    (path / "train.py").write_text("in the copy\n")
    assert change_in(path, commit).files == ("train.py",)
    assert change_in(worktree, commit).files == ()
    told = snapshot.repair(copy, path.parent, written=lambda name: True)
    assert told == [
        f"h1: {path} is not the folder that gpudebug made (device, inode or birth differ): it stays"
    ]
    assert snapshot.repair(copy, path.parent, written=lambda name: True) == []
    made = snapshot.add_worktree(copy, path, commit)
    assert made.path == path.with_name("h1-2")
    snapshot.remove_worktree(copy, path)
    assert not made.path.exists()
    assert (path / "train.py").read_text() == "in the copy\n"
    assert (worktree / "train.py").exists()
    assert snapshot.repair(top, worktree.parent) == []
