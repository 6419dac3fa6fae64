"""References of our own: written one at a time, and never stuck at a lock that a kill left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository
from tests.support.processes import fork
from tests.support.repositories import REF, stored

from gpudebug.core.errors import GitError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import refs
from gpudebug.edges.git import repository as module
from gpudebug.edges.git.refs import MeasuredTree, trusted, vouch


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"train.py": "1\n"})


def head(top: Path) -> str:
    return git(top, "rev-parse", "HEAD").strip()


def test_a_lock_that_nobody_holds_is_taken_away(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refs, "_STALE_S", 0.1)
    lock = top / ".git" / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    snapshot.keep(top, REF, head(top))
    assert git(top, "rev-parse", REF).strip() == head(top)
    lock.touch()
    snapshot.forget(top, REF)
    assert git(top, "for-each-ref", "refs/gpudebug") == ""
    assert not lock.exists()


def test_one_that_is_held_for_a_moment_is_waited_for(top: Path) -> None:
    lock = top / ".git" / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("gc's")

    def release() -> None:
        time.sleep(0.3)
        assert lock.read_text() == "gc's"
        lock.unlink()

    pid = fork(release)
    snapshot.keep(top, REF, head(top))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_lock_of_the_users_is_never_broken(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refs, "_STALE_S", 0.1)
    snapshot.keep(top, REF, head(top))
    git(top, "pack-refs", "--all")
    git(top, "config", "core.packedRefsTimeout", "0")
    lock = top / ".git" / "packed-refs.lock"
    lock.touch()
    with pytest.raises(GitError, match=r"packed-refs\.lock") as caught:
        snapshot.forget(top, REF)
    assert caught.value.next
    assert lock.exists()


def test_many_at_once_all_succeed(top: Path) -> None:
    commit = head(top)
    names = [f"{REF}{n % 3}" for n in range(12)]
    pids = [fork(lambda name=name: snapshot.keep(top, name, commit)) for name in names]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * len(pids)
    assert git(top, "for-each-ref", "--format=%(refname)", "refs/gpudebug").split() == sorted(set(names))


def killing_git(folder: Path, word: str) -> Path:
    """A folder for PATH with a git that is killed as soon as it leaves the file `word`, after making it."""
    folder.mkdir()
    program = folder / "git"
    real = shutil.which("git")
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *update-ref*) touch \'{word}\'; kill -9 $$;; esac\nexec {real} "$@"\n'
    )
    program.chmod(0o755)
    return folder


def test_a_lock_that_a_killed_git_of_ours_left_goes_with_the_next_command(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refs, "_git_alive_since", lambda _: False)
    snapshot.keep(top, REF, head(top))
    git(top, "pack-refs", "--all")
    git(top, "branch", "users")
    lock = top / ".git" / "packed-refs.lock"
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{killing_git(tmp_path / 'bin', str(lock))}:{os.environ['PATH']}")
        patched.setattr(refs, "_take_away", lambda *_: False)
        with pytest.raises(GitError):
            snapshot.forget(top, REF)
    assert lock.exists()
    assert snapshot.repair(top, top / "runs" / "worktrees" / "c") == []
    assert not lock.exists()
    git(top, "branch", "--quiet", "-D", "users")
    assert not (top / ".git" / "gpudebug" / "ref.json").exists()
    snapshot.forget(top, REF)
    assert git(top, "for-each-ref", "refs/gpudebug") == ""


@pytest.mark.parametrize(
    "why", ["a git is alive", "it was made later", "it was there before", "another host made it"]
)
def test_a_lock_that_may_be_the_users_stays(top: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    lock, asked = top / ".git" / "packed-refs.lock", top / ".git" / "gpudebug" / "ref.json"
    asked.parent.mkdir(mode=0o700)
    absent = [] if why == "it was there before" else ["packed-refs.lock"]
    place = {"host": "elsewhere", "boot": "another"} if why == "another host made it" else {}
    asked.write_text(json.dumps({"asked": ["update-ref"], "absent": absent, **place}))
    lock.touch()
    monkeypatch.setattr(refs, "_git_alive_since", lambda _: why == "a git is alive")
    if why == "it was made later":
        monkeypatch.setattr(refs, "PATIENCE_S", -1.0)
    snapshot.repair(top, top / "runs" / "worktrees" / "c")
    assert lock.exists()
    assert asked.exists() is (why in ("a git is alive", "another host made it"))


def test_a_git_that_is_alive_is_seen(tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.symlink_to(shutil.which("sleep") or "sleep")
    with subprocess.Popen([str(program), "30"]) as process:
        try:
            time.sleep(0.2)
            assert refs._git_alive_since(time.time())
        finally:
            process.kill()


ALL = MeasuredTree(())


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", "data/keep.txt": "x\n"})
    (top / "train.py").write_text("2\n")
    return top


def kept(dirty: Path) -> tuple[snapshot.Checkout, snapshot.Base]:
    checkout = snapshot.identify(dirty)
    return checkout, snapshot.snapshot(dirty, ref=REF, label=checkout.tree)


def test_what_was_recorded_is_believed(dirty: Path) -> None:
    (dirty / "notes.txt").write_text("not counted\n")
    checkout, base = kept(dirty)
    vouch(checkout, REF, base.commit, ALL)
    assert trusted(checkout.at, REF, base.commit, base.tree, ALL) is True
    assert trusted(checkout.at, REF, base.commit, "0" * 16, ALL) is False
    assert trusted(checkout.at, REF, git(dirty, "rev-parse", "HEAD").strip(), base.tree, ALL) is False


@pytest.mark.parametrize("untracked", [None, "notes.txt", "own/tool.txt"])
def test_without_a_record_its_digest_proves_it(dirty: Path, untracked: str | None) -> None:
    if untracked:
        (dirty / untracked).parent.mkdir(exist_ok=True)
        (dirty / untracked).write_text("x\n")
    checkout, base = kept(dirty)
    assert trusted(checkout.at, REF, base.commit, base.tree, ALL) is True
    commit_all(dirty)
    (dirty / "train.py").write_text("3\n")
    assert trusted(checkout.at, REF, base.commit, base.tree, ALL) is True
    assert trusted(checkout.at, REF, base.commit, snapshot.identify(dirty).tree, ALL) is None


def test_a_python_file_more_is_another_tree(dirty: Path) -> None:
    checkout, base = kept(dirty)
    (dirty / "torch.py").write_text("evil\n")
    other = snapshot.snapshot(dirty, ref=f"{REF}-1", label=base.tree)
    assert trusted(checkout.at, REF, other.commit, base.tree, ALL) is None


def test_a_record_that_was_edited_is_no_proof(dirty: Path) -> None:
    checkout, base = kept(dirty)
    vouch(checkout, REF, base.commit, ALL)
    (dirty / "train.py").write_text("evil\n")
    other = snapshot.snapshot(dirty, ref=f"{REF}-1", label=base.tree).commit
    for file in (dirty / ".git" / "gpudebug" / "bases").iterdir():
        file.write_text(file.read_text().replace(base.commit, other))
    assert trusted(checkout.at, REF, other, base.tree, ALL) is False


def test_a_base_made_anew_or_forgotten_has_no_old_record(dirty: Path) -> None:
    checkout, base = kept(dirty)
    vouch(checkout, REF, base.commit, ALL)
    place = dirty / ".git" / "gpudebug" / "bases"
    assert len(os.listdir(place)) == 1
    kept(dirty)
    assert os.listdir(place) == []
    vouch(checkout, REF, base.commit, ALL)
    snapshot.forget(dirty, REF)
    assert os.listdir(place) == []
    assert stored(dirty, REF) is None


def test_an_index_is_gone_afterwards(dirty: Path) -> None:
    with module._temporary_index(dirty / ".git") as path:
        path.write_text("x")
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(dirty / ".git" / "gpudebug" / "indexes") == []
