"""References of our own: written one at a time, and never stuck at a lock that a kill left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.support.campaigns import git, make_repository
from tests.support.processes import fork

from gpudebug.core.errors import GitError
from gpudebug.edges import snapshot
from gpudebug.edges.snapshot import refs

REF = "refs/gpudebug/test/base"


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
