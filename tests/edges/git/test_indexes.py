"""Indexes of gpudebug's own: one a call, gone afterwards, also those of commands that were killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.support.campaigns import make_repository

from gpudebug.edges.git import indexes
from gpudebug.edges.git.grounds import PRIVATE


def test_an_index_is_there_for_a_while_and_what_a_kill_left_goes_with_it(tmp_path: Path) -> None:
    common = make_repository(tmp_path / "repo", {"a.py": ""}) / ".git"
    place = common / PRIVATE / "indexes"
    with indexes.temporary(common) as first, indexes.temporary(common) as second:
        assert first != second
        assert first.parent.is_dir() and second.parent.is_dir()
        first.write_bytes(b"an index")
    assert list(place.iterdir()) == []
    left = place / "0123456789abcdef"
    left.mkdir()
    (left / "index").write_bytes(b"of a killed command")
    with indexes.temporary(common) as made:
        assert [path.name for path in place.iterdir()] == [made.parent.name]
    assert list(place.iterdir()) == []


def test_what_another_host_made_is_left_alone_for_longer_than_a_command_takes(tmp_path: Path) -> None:
    """NFS keeps the lock of a folder to its host, so that it looks free here."""
    common = make_repository(tmp_path / "repo", {"a.py": ""}) / ".git"
    with indexes.temporary(common) as index:
        mine = index.parent.name.rpartition(".")[0]
    place = common / PRIVATE / "indexes"
    at_work, left, own = place / "0-0.aa", place / "0-0.bb", place / f"{mine}.cc"
    for folder in (at_work, left, own):
        folder.mkdir()
    os.utime(left, (0, time.time() - 2 * 3600))
    with indexes.temporary(common):
        assert [at_work.exists(), left.exists(), own.exists()] == [True, False, False]
