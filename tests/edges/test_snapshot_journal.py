"""The journal of a worktree: never without something to say, one holder at a time, nothing left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.support.campaigns import git, make_repository
from tests.support.processes import fork
from tests.support.repositories import lies, registered

from gpudebug.core.errors import BusyError, GitError
from gpudebug.edges import snapshot
from gpudebug.edges.snapshot import journal
from gpudebug.edges.snapshot.journal import Record

RECORD = Record("ready", "token", "c" * 40, "h1", (".venv", "a b"), ("a note",), ())


def test_what_is_written_is_read_whatever_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "w" / "h1"
    with journal.held(path) as ours:
        assert ours.read() is None
        for record in (RECORD, Record("making", "t", "c"), RECORD):
            ours.write(record)
            assert ours.read() == record == journal.peek(path)
    assert journal.worktrees_of(path.parent) == [path]
    assert journal.peek(path.with_name("h2")) is None
    with journal.held(path) as ours:
        ours.remove()
    assert os.listdir(tmp_path) == []
    assert journal.worktrees_of(path.parent) == []


def test_at_each_moment_of_writing_it_says_the_old_or_the_new(tmp_path: Path) -> None:
    """A short record over a long one leaves a tail until it is cut off."""
    path = tmp_path / "w" / "h1"
    short = Record("removing", "token", "c")
    with journal.held(path) as ours:
        ours.write(short)
        new = ours.path.read_bytes()
        ours.write(RECORD)
        old = ours.path.read_bytes()
        assert len(old) > len(new)
        ours.path.write_bytes(new + old[len(new) :])
        assert ours.read() == short


@pytest.mark.parametrize("torn", [b"{", b"\xff", b"[1]", b'{"state": "ready"}', b"null", b'{"a": 1}'])
def test_one_that_is_torn_is_one_of_ours_that_is_not_whole(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "w" / "h1"
    journal.file_of(path).parent.mkdir()
    journal.file_of(path).write_bytes(torn)
    assert journal.peek(path) == Record("making", "", "")


def test_a_torn_journal_does_not_stick(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    commit = git(top, "rev-parse", "HEAD").strip()
    path = tmp_path / "w" / "h1"
    snapshot.add_worktree(top, path, commit)
    journal.file_of(path).write_bytes(b"{")
    snapshot.remove_worktree(top, path)
    assert (registered(top), os.listdir(tmp_path / "w")) == ([], [])


def test_it_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "w" / "h1"
    ready = os.pipe()

    def hold() -> None:
        with journal.held(path) as ours:
            ours.write(RECORD)
            os.write(ready[1], b".")
            time.sleep(0.4)
            ours.remove()

    pid = fork(hold)
    os.read(ready[0], 1)
    with pytest.raises(BusyError, match="another command") as caught, journal.held(path, patience=0.05):
        pass
    assert (caught.value.exit_code, caught.value.file) == (6, str(path))
    with journal.held(path) as ours:
        assert ours.read() is None
    assert os.listdir(tmp_path) == []
    os.waitpid(pid, 0)
    for descriptor in ready:
        os.close(descriptor)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "w" / "h1"
    journal.file_of(path).parent.mkdir()
    (tmp_path / "victim").write_text("mine")
    journal.file_of(path).symlink_to(tmp_path / "victim")
    with pytest.raises(GitError, match="journal"), journal.held(path):
        pass
    assert (tmp_path / "victim").read_text() == "mine"


def test_many_at_once_make_and_remove_the_same_and_others(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n"})
    commit = git(top, "rev-parse", "HEAD").strip()
    paths = [tmp_path / "w" / f"h{n % 4}" for n in range(8)]
    pids = [fork(lambda path=path: snapshot.add_worktree(top, path, commit)) for path in paths]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8
    assert all(lies(path) == {"train.py": ("file", "1\n")} for path in paths)
    assert registered(top) == ["h0", "h1", "h2", "h3"]
    pids = [fork(lambda path=path: snapshot.remove_worktree(top, path)) for path in paths]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 8
    assert (registered(top), os.listdir(tmp_path / "w")) == ([], [])
