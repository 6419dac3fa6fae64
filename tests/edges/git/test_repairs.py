"""Worktrees that a kill or a slip left half there: the next command mends them, and only those."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import git
from tests.support.processes import fork
from tests.support.repositories import (
    REF,
    change_in,
    left_over,
    lies,
    registered,
    repository,
    stored,
    users,
    worktrees,
)

from gpudebug.core.errors import BusyError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import journal
from gpudebug.edges.removal import identity_of

MOMENTS = 25


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    top = repository(tmp_path / "repo")
    for n in range(40):
        (top / "pkg" / f"module{n}.py").write_text(f"n = {n}\n" * 50)
    return top


@pytest.fixture
def commit(top: Path) -> str:
    return snapshot.snapshot(top, ref=REF, label="l").commit


def place(top: Path, name: str = "h1") -> Path:
    return top / "runs" / "worktrees" / "campaign" / name


def add(top: Path, commit: str, name: str = "h1") -> snapshot.Worktree:
    return snapshot.add_worktree(top, place(top, name), commit, links=[".venv"], checkout=top)


def killed_after(seconds: float, body: Callable[[], object], group: bool) -> None:
    """Run `body` in a process, and end it (or all that it started, too) by SIGKILL."""

    def alone() -> None:
        os.setpgid(0, 0)
        body()

    pid = fork(alone)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL) if group else os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def duration(body: Callable[[], object]) -> float:
    started = time.monotonic()
    pid = fork(body)
    os.waitpid(pid, 0)
    return time.monotonic() - started


@pytest.mark.slow
def test_a_kill_at_any_moment_of_making_is_mended(top: Path, commit: str) -> None:
    git(top, "worktree", "add", "--quiet", "--detach", str(top.with_name("theirs")))
    before, expected = users(top), None
    took = duration(lambda: add(top, commit))
    expected = lies(place(top))
    snapshot.remove_worktree(top, place(top))
    mended = 0
    for moment in range(MOMENTS):
        killed_after(took * 1.1 * moment / MOMENTS, lambda: add(top, commit), group=moment % 2 == 0)
        if moment % 3:
            told = snapshot.repair(top, place(top).parent)
            mended += bool(told)
            assert all(line == "h1: was left half-made; it is removed" for line in told)
        made = add(top, commit)
        assert lies(made.path) == expected
        assert (made.linked, made.notes) == ((".venv",), ())
        assert git(made.path, "status", "--porcelain") == ""
        assert len(worktrees(top)) == len(registered(top)) == 2
        assert snapshot.repair(top, place(top).parent) == []
        snapshot.remove_worktree(top, made.path)
        assert (len(registered(top)), users(top)) == (1, before)
        assert left_over(top) == []
    assert mended
    git(top, "fsck", "--connectivity-only")


def test_a_kill_at_any_moment_of_removing_is_mended(top: Path, commit: str) -> None:
    add(top, commit)
    took = duration(lambda: snapshot.remove_worktree(top, place(top)))
    for moment in range(8):
        made = add(top, commit)
        killed_after(took * moment / 8, lambda: snapshot.remove_worktree(top, place(top)), group=True)
        snapshot.repair(top, place(top).parent)
        if moment % 2:
            assert lies(add(top, commit).path).keys() >= {"train.py", "new.py"}
        snapshot.remove_worktree(top, made.path)
        assert (registered(top), left_over(top)) == ([], [])


def test_a_kill_in_the_middle_of_a_snapshot_leaves_nothing_of_the_users_changed(top: Path) -> None:
    before = users(top)
    took = duration(lambda: snapshot.snapshot(top, ref=f"{REF}-0", label="l"))
    for moment in range(8):
        ref = f"{REF}-{moment}"
        killed_after(
            took * moment / 8, lambda ref=ref: snapshot.snapshot(top, ref=ref, label="l"), group=True
        )
        assert users(top) == before
        found = stored(top, ref)
        assert snapshot.snapshot(top, ref=ref, label="l") == (found or stored(top, ref))


def test_what_is_at_work_is_left_alone(top: Path, commit: str) -> None:
    """Not even the process counts, but who holds the journal: an orphaned git does so too."""
    path = place(top)
    ready, done = os.pipe(), os.pipe()
    record = journal.WorktreeRecord("making", "0" * 16, commit, str(path), "h1-" + "0" * 16)

    def at_work() -> None:
        path.parent.mkdir(parents=True)
        with journal.held(top / ".git", path) as ours:
            ours.write(record)
            path.mkdir()
            ours.write(replace(record, made=identity_of(os.stat(path))))
            os.write(ready[1], b".")
            os.close(done[1])
            os.read(done[0], 1)

    pid = fork(at_work)
    os.read(ready[0], 1)
    try:
        assert snapshot.repair(top, path.parent) == []
        with (
            pytest.raises(BusyError, match="another command"),
            journal.held(top / ".git", path, patience=0.05),
        ):
            pass
        assert path.is_dir()
    finally:
        os.close(done[1])
        os.waitpid(pid, 0)
    assert snapshot.repair(top, path.parent) == ["h1: was left half-made; it is removed"]
    for descriptor in (*ready, done[0]):
        os.close(descriptor)


class TestByHand:
    """Somebody removed a part of it."""

    def test_the_folder(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        shutil.rmtree(made.path)
        told = snapshot.repair(top, made.path.parent, written=lambda name: True)
        assert told == ["h1: its folder was deleted; the worktree is forgotten"]
        assert registered(top) == []
        assert add(top, commit).path.is_dir()

    def test_the_folder_and_nobody_repairs(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        shutil.rmtree(made.path)
        assert lies(add(top, commit).path)["train.py"]
        shutil.rmtree(made.path)
        snapshot.remove_worktree(top, made.path)
        assert registered(top) == []

    def test_all_of_runs(self, top: Path, commit: str) -> None:
        made, other = add(top, commit), add(top, commit, "h2")
        shutil.rmtree(top / "runs")
        told = snapshot.repair(top, made.path.parent)
        assert told == [f"{name}: its folder was deleted; the worktree is forgotten" for name in ("h1", "h2")]
        assert registered(top) == []
        assert not (top / "runs").exists()
        add(top, commit, "h2")
        shutil.rmtree(top / "runs")
        snapshot.remove_worktree(top, other.path)
        assert registered(top) == []

    def test_gits_folder_of_it_keeps_what_was_written(self, top: Path, commit: str) -> None:
        made, other = add(top, commit), add(top, commit, "h2")
        (made.path / "train.py").write_text("work of hours\n")
        shutil.rmtree(top / ".git" / "worktrees")
        told = snapshot.repair(top, made.path.parent, written=lambda name: name == "h1")
        assert told == [
            "h1: git had forgotten the worktree; it is registered again",
            "h2: git's record of it was deleted; the worktree is forgotten",
        ]
        assert change_in(made.path, commit).files == ("train.py",)
        assert git(made.path, "status", "--porcelain") == " M train.py\n"
        assert worktrees(top) == [str(made.path)]
        assert not other.path.exists()
        assert snapshot.repair(top, made.path.parent) == []
        snapshot.remove_worktree(top, made.path)

    def test_its_git_file(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        (made.path / ".git").unlink()
        told = snapshot.repair(top, made.path.parent, written=lambda name: True)
        assert told == ["h1: its .git file was gone or led elsewhere; it is written again"]
        assert git(made.path, "status", "--porcelain") == ""

    def test_the_journal(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        journal.file_of(top / ".git", made.path).unlink()
        assert snapshot.repair(top, made.path.parent) == []
        snapshot.remove_worktree(top, made.path)
        assert (registered(top), made.path.exists()) == ([], False)

    def test_git_prunes_what_it_thinks_is_gone(self, top: Path, commit: str) -> None:
        made = add(top, commit)
        made.path.rename(top / "aside")
        git(top, "worktree", "prune", "--expire=now")
        (top / "aside").rename(made.path)
        git(top, "worktree", "add", "--quiet", "--detach", str(top.with_name("h1")))
        (made.path / "train.py").write_text("work of hours\n")
        snapshot.repair(top, made.path.parent, written=lambda name: True)
        assert change_in(made.path, commit).files == ("train.py",)
        assert worktrees(top) == [str(top.with_name("h1")), str(made.path)]
        snapshot.remove_worktree(top, made.path)
        assert worktrees(top) == [str(top.with_name("h1"))]


def test_a_moved_repository(top: Path, commit: str) -> None:
    made = add(top, commit)
    (made.path / "train.py").write_text("work of hours\n")
    moved = top.with_name("moved")
    top.rename(moved)
    told = snapshot.repair(moved, place(moved).parent, written=lambda name: True)
    assert told == ["h1: git had forgotten the worktree; it is registered again"]
    assert change_in(place(moved), commit).files == ("train.py",)
    snapshot.remove_worktree(moved, place(moved))
    assert registered(moved) == []
