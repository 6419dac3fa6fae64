"""Run folders outside a campaign: the first free number beside the user's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges import store


def test_folders_are_numbered_and_leave_what_has_their_name(tmp_path: Path) -> None:
    lone = store.LoneFolders(tmp_path, "look")
    first = lone.new_run("why")
    (tmp_path / "look-2").write_text("mine")
    third = lone.new_run("why")
    assert [first.name, third.name] == ["look-1", "look-3"]
    assert (tmp_path / "look-2").read_text() == "mine"
    assert sorted(p.name for p in first.path.iterdir()) == [".gitignore", "job", "records"]
    assert (first.path / ".gitignore").read_text() == "*\n"
    assert first.path.stat().st_mode & 0o777 == 0o700


def test_a_discarded_folder_leaves_nothing(tmp_path: Path) -> None:
    lone = store.LoneFolders(tmp_path, "look")
    lone.discard(lone.new_run("why"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot make a run folder"):
        store.LoneFolders(tmp_path / "nowhere", "look").new_run("why")
