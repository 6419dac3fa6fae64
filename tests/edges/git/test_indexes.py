"""Indexes of gpudebug's own: one a call, gone afterwards, also those of commands that were killed."""

from __future__ import annotations

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
