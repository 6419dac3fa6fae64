"""Small private files: no link is followed to or from them, and nobody else can read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges.store.private import LARGEST, PrivateFolder

NAMES = ("ours", "campaign")


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    assert PrivateFolder(tmp_path, NAMES).read("a.json") is None
    PrivateFolder(tmp_path, NAMES).write("a.json", b"1")
    PrivateFolder(tmp_path, NAMES).write("a.json", b"2")
    assert PrivateFolder(tmp_path, NAMES).read("a.json") == b"2"
    folder = tmp_path.joinpath(*NAMES)
    assert os.listdir(folder) == ["a.json"]
    assert (folder / "a.json").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_is_removed_is_the_file_or_a_link_itself(tmp_path: Path) -> None:
    PrivateFolder(tmp_path, NAMES).remove("a.json")
    PrivateFolder(tmp_path, NAMES).write("a.json", b"1")
    folder = tmp_path.joinpath(*NAMES)
    (folder / "b.json").symlink_to("a.json")
    PrivateFolder(tmp_path, NAMES).remove("b.json")
    assert os.listdir(folder) == ["a.json"]
    PrivateFolder(tmp_path, NAMES).remove("a.json")
    assert os.listdir(folder) == []
    (folder / "a.json").mkdir()
    with pytest.raises(StoreError):
        PrivateFolder(tmp_path, NAMES).remove("a.json")


@pytest.mark.parametrize("place", ["ours", "ours/campaign", "ours/campaign/a.json"])
def test_a_link_is_not_followed(tmp_path: Path, place: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    PrivateFolder(other, NAMES).write("a.json", b"theirs")
    here = tmp_path / "here"
    path = here / place
    path.parent.mkdir(parents=True)
    path.symlink_to(other / place)
    with pytest.raises(StoreError):
        PrivateFolder(here, NAMES).read("a.json")


def test_writing_replaces_a_link_and_leaves_its_target(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    folder = tmp_path.joinpath(*NAMES)
    folder.mkdir(parents=True)
    (folder / "a.json").symlink_to(tmp_path / "mine")
    PrivateFolder(tmp_path, NAMES).write("a.json", b"1")
    assert (tmp_path / "mine").read_text() == "kept"
    assert PrivateFolder(tmp_path, NAMES).read("a.json") == b"1"


def test_what_is_no_file_or_too_large_is_refused(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*NAMES)
    folder.mkdir(parents=True)
    os.mkfifo(folder / "fifo")
    with pytest.raises(StoreError, match="regular"):
        PrivateFolder(tmp_path, NAMES).read("fifo")
    (folder / "large").write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(StoreError, match="larger"):
        PrivateFolder(tmp_path, NAMES).read("large")
    (folder / "folder").mkdir()
    with pytest.raises(StoreError):
        PrivateFolder(tmp_path, NAMES).read("folder")
