"""The journal of a worktree: never without something to say, one holder at a time, nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.support.campaigns import git, make_repository
from tests.support.processes import fork
from tests.support.repositories import lies

from gpudebug.core.errors import BusyError, GitError, StoreError
from gpudebug.edges import git as snapshot
from gpudebug.edges.git import journal
from gpudebug.edges.git.journal import WorktreeRecord
from gpudebug.edges.removal import Identity

COMMIT = "c" * 40
RECORD = WorktreeRecord("ready", COMMIT, "/w/h1", Identity(1, 2), (".venv", "a b"), ("a note",), 7)
MAKING = WorktreeRecord("making", COMMIT, "/w/h1")


@pytest.fixture
def common(tmp_path: Path) -> Path:
    (tmp_path / "common").mkdir()
    return tmp_path / "common"


def test_what_is_written_is_read_whatever_was_there(tmp_path: Path, common: Path) -> None:
    path = tmp_path / "w" / "h1"
    with journal.held(common, path) as ours:
        assert ours.read() is None
        for record in (RECORD, MAKING, RECORD):
            ours.write(record)
            assert ours.read() == record == journal.peek(common, path)
    assert journal.worktrees_of(common, path.parent) == [path]
    assert journal.peek(common, path.with_name("h2")) is None
    with journal.held(common, path) as ours:
        ours.remove()
    assert os.listdir(journal.place_of(common, path.parent)) == []
    assert journal.worktrees_of(common, path.parent) == []
    assert os.listdir(tmp_path) == ["common"]


def test_only_its_owner_may_read_and_write_there(tmp_path: Path, common: Path) -> None:
    path = tmp_path / "w" / "h1"
    with journal.held(common, path) as ours:
        ours.write(RECORD)
        assert ours.file.stat().st_mode & 0o777 == 0o600
        places = (common / "gpudebug", common / "gpudebug" / "worktrees", ours.file.parent)
        assert [place.stat().st_mode & 0o777 for place in places] == [0o700] * 3


def test_a_write_that_fails_leaves_the_old(
    tmp_path: Path, common: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w" / "h1"

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with journal.held(common, path) as ours:
        ours.write(RECORD)
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(GitError, match="No space left") as caught:
            ours.write(MAKING)
        assert caught.value.next
        assert ours.read() == RECORD
    assert os.listdir(ours.file.parent) == ["h1.json"]


UNREADABLE = {
    "empty": b"",
    "torn": b"{",
    "no text": b"\xff",
    "a list": b"[1]",
    "null": b"null",
    "another object": b'{"hello": 1}',
    "of 0.1.0": b'{"state": "making", "token": "", "commit": ""}',
    "without a commit": json.dumps({**asdict(RECORD), "commit": ""}).encode(),
    "an id that leads out": json.dumps({**asdict(RECORD), "id": ".."}).encode(),
    "a path that is none": json.dumps({**asdict(RECORD), "path": "/w/.."}).encode(),
    "too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_one_that_cannot_be_read_is_an_error_and_no_permission(tmp_path: Path, data: bytes) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    path = top / "runs" / "worktrees" / "c" / "h1"
    path.mkdir(parents=True)
    (path / "mine.txt").write_text("mine")
    file = journal.file_of(top / ".git", path)
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    for call in (
        lambda: journal.peek(top / ".git", path),
        lambda: snapshot.remove_worktree(top, path),
        lambda: snapshot.repair(top, path.parent),
    ):
        with pytest.raises(GitError, match="not a readable record of a worktree") as caught:
            call()
        assert caught.value.file == str(file)
        assert caught.value.next
    assert (path / "mine.txt").read_text() == "mine"
    assert file.read_bytes() == data


@pytest.mark.parametrize("name", ["...json", "..json", ".json"])
def test_a_name_that_is_no_worktrees_is_refused(tmp_path: Path, common: Path, name: str) -> None:
    place = journal.place_of(common, tmp_path / "w")
    place.mkdir(parents=True)
    (place / name).write_text(json.dumps(asdict(RECORD)))
    with pytest.raises(GitError, match="not a readable record of a worktree"):
        journal.worktrees_of(common, tmp_path / "w")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user can write there only if root lets them")
def test_another_users_is_not_believed(tmp_path: Path, common: Path) -> None:
    path = tmp_path / "w" / "h1"
    with journal.held(common, path) as ours:
        ours.write(RECORD)
    os.chown(ours.file, 65534, 65534)
    for _ in range(2):
        with pytest.raises(GitError, match="another user") as caught:
            journal.peek(common, path)
        assert caught.value.next
    os.chown(ours.file.parent, 65534, 65534)
    with pytest.raises(GitError, match="another user"), journal.held(common, path):
        pass


def test_it_is_waited_for_and_then_named(tmp_path: Path, common: Path) -> None:
    path = tmp_path / "w" / "h1"
    ready = os.pipe()

    def hold() -> None:
        with journal.held(common, path) as ours:
            ours.write(RECORD)
            os.write(ready[1], b".")
            time.sleep(0.4)
            ours.remove()

    pid = fork(hold)
    os.read(ready[0], 1)
    with (
        pytest.raises(BusyError, match="another command") as caught,
        journal.held(common, path, patience=0.05),
    ):
        pass
    assert (caught.value.exit_code, caught.value.file) == (6, str(path))
    with journal.held(common, path) as ours:
        assert ours.read() is None
    assert os.listdir(ours.file.parent) == []
    os.waitpid(pid, 0)
    for descriptor in ready:
        os.close(descriptor)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, common: Path) -> None:
    path = tmp_path / "w" / "h1"
    file = journal.file_of(common, path)
    file.parent.mkdir(parents=True)
    (tmp_path / "victim").write_text(json.dumps(asdict(RECORD)))
    for link in (file, file.with_suffix(".held")):
        link.symlink_to(tmp_path / "victim")
        with pytest.raises(GitError), journal.held(common, path) as ours:
            ours.read()
        link.unlink(missing_ok=True)
    file.parent.rmdir()
    file.parent.symlink_to(tmp_path)
    with pytest.raises(StoreError, match="is a link"), journal.held(common, path):
        pass
    assert (tmp_path / "victim").read_text() == json.dumps(asdict(RECORD))


def test_many_at_once_make_and_remove_the_same_and_others(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    commit = git(top, "rev-parse", "HEAD").strip()
    place = top / "runs" / "worktrees" / "c"
    paths = [place / f"h{n % 4}" for n in range(8)]
    pids = [fork(lambda path=path: snapshot.add_worktree(top, path, commit)) for path in paths]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8
    assert all(lies(path) == {"train.py": ("file", "1\n")} for path in paths)
    assert sorted(os.listdir(place)) == ["h0", "h1", "h2", "h3"]
    pids = [fork(lambda path=path: snapshot.remove_worktree(top, path)) for path in paths]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8
    assert os.listdir(place) == []
