"""Folders and files of gpudebug's own in git's folder: no link is followed, nothing of others is believed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from gpudebug.core.errors import BusyError, GitError
from gpudebug.edges.git import grounds
from gpudebug.edges.removal import NotOurs


def test_a_file_is_written_once_replaced_and_dropped(tmp_path: Path) -> None:
    with grounds.private(tmp_path, "deep", "er") as folder:
        grounds.write_file(folder, "state", b"one")
        with pytest.raises(FileExistsError):
            grounds.write_file(folder, "state", b"two")
        grounds.replace_file(folder, "state", b"two")
        assert grounds.read_file(folder, "state") == b"two"
        assert os.listdir(folder) == ["state"]
        grounds.drop_file(folder, "state")
        assert grounds.read_file(folder, "state") is None
    place = tmp_path / grounds.PRIVATE
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "link").symlink_to("secret")
    with pytest.raises(GitError, match="cannot read it"):
        grounds.read_file(tmp_path, "link")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "way").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotOurs), grounds.folder_of(tmp_path / "top", tmp_path / "top" / "way" / "file"):
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_is_no_file_or_outside_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(GitError, match="not a regular file"):
        grounds.read_file(tmp_path, "folder")
    with pytest.raises(GitError, match="lies outside of the repository"):
        grounds.identity(tmp_path / "folder", tmp_path / "other")
    with pytest.raises(GitError, match="cannot open it: No such file"), grounds.failing("open it", tmp_path):
        (tmp_path / "nothing").read_bytes()


def test_another_users_word_is_not_believed(tmp_path: Path) -> None:
    mine = tmp_path.stat()
    grounds.refuse_foreign(mine, tmp_path)
    theirs = os.stat_result((*mine[:4], os.geteuid() + 1, *mine[5:10]))
    with pytest.raises(GitError, match="belongs to another user"):
        grounds.refuse_foreign(theirs, tmp_path)


def test_one_waits_for_another_whose_lock_other_hosts_see_too(tmp_path: Path) -> None:
    """A lock on a file, not on a folder, which NFS keeps to the host."""
    file = tmp_path / grounds.PRIVATE / "alone"
    with grounds.alone(tmp_path), file.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with grounds.alone(tmp_path):
        pass


def test_a_lock_that_no_git_can_hold_so_long_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a host that crashed with it may leave it on NFS."""
    monkeypatch.setattr(grounds, "PATIENCE_S", 0.05)
    said = "works in git's folder"
    with grounds.alone(tmp_path), pytest.raises(BusyError, match=said) as caught, grounds.alone(tmp_path):
        pass
    assert str(caught.value.file).endswith("gpudebug/alone")
