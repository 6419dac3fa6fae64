"""The one door to files: regular ones only, at once, and no more memory than they are long."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.obstacles import OTHER_KINDS

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener

READERS: dict[str, Callable[[Path], object]] = {
    "file": opener.read_file,
    "head": lambda path: opener.read_head(path, 10),
    "tail": lambda path: opener.read_tail(path, 10),
    "digest": opener.file_digest,
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str, reader: str) -> None:
    path = tmp_path / "thing"
    OTHER_KINDS[kind](path)
    with pytest.raises(StoreError) as caught:
        READERS[reader](path)
    assert caught.value.message == ("is a link" if kind == "endless device" else "not a regular file")
    assert (caught.value.file, caught.value.next) == (
        str(path),
        "put a plain file in its place, or move it away",
    )
    assert opener.look(path) is None


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_nor_is_it_opened_for_writing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    OTHER_KINDS[kind](path)
    with pytest.raises(opener.NotRegular):
        opener.descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def test_a_link_that_a_person_named_is_followed_to_a_regular_file_only(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="is a link"):
        opener.read_file(tmp_path / "link")
    assert opener.read_file(tmp_path / "link", follow=True) == b"0123456789"
    assert opener.read_tail(tmp_path / "link", 4, follow=True) == b"6789"
    with pytest.raises(StoreError, match="not a regular file"):
        opener.read_file(tmp_path / "zero", follow=True)


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file") as caught:
        opener.read_file(tmp_path / "nothing.md")
    assert caught.value.next == "check the path"
    assert opener.look(tmp_path / "nothing.md") is None


def test_a_file_that_cannot_be_right_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as f:
        f.truncate(257 << 20)
    with pytest.raises(StoreError, match="larger than 256 MB"):
        opener.read_file(tmp_path / "huge")
    assert opener.read_head(tmp_path / "huge", 4) == b"\0\0\0\0"


def test_no_more_memory_is_set_aside_than_the_file_is_long(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"x" * 5000)
    tracemalloc.start()
    try:
        assert len(opener.read_head(path, 256 << 20)) == len(opener.read_file(path)) == 5000
        assert opener.read_tail(path, 256 << 20) == opener.read_head(path, 256 << 20, 0)
        assert opener.read_head(path, 256 << 20, 6000) == b""
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_huge_file_that_is_a_hole_is_digested_by_its_size(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as f:
        f.truncate(1 << 40)
    assert opener.file_digest(tmp_path / "huge") == f"unread-{1 << 40}-bytes-with-holes"
