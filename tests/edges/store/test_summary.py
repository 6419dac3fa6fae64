"""A summary is read as it was written, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.edges.store.summary import (
    as_they_are,
    encoded,
    path_of,
    read_summary,
    run_names,
    summaries,
)

HEAD, FILES, ROWS = {"when": "now\n"}, ["runs/0001-a", "/x\udcff"], [{"number": 1}, {"number": 2}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = path_of(tmp_path, "test")
    found.parent.mkdir(parents=True)
    found.write_bytes(encoded(HEAD, FILES, ROWS))
    return found


def test_it_is_read_as_it_was_written(path: Path, tmp_path: Path) -> None:
    found = read_summary(path)
    assert found is not None
    assert (found.head, found.files, found.every_row()) == (HEAD, FILES, ROWS)
    assert summaries(tmp_path) == [path]
    assert summaries(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("data", [b"", b"x\n", b"\n\n\n", b"[" * 100_000])
def test_anything_else_is_none(path: Path, data: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(data)
    assert read_summary(path) is None
    path.write_bytes(whole[:-1])
    assert read_summary(path) is None
    path.unlink()
    assert read_summary(path) is None
    os.mkfifo(path)
    assert read_summary(path) is None


def test_every_change_of_a_file_shows(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    names = ["a", "missing", str(tmp_path / "a")]
    before, status = as_they_are(tmp_path, names), (tmp_path / "a").stat()
    assert as_they_are(tmp_path, names) == before
    (tmp_path / "a").write_text("2")
    os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert as_they_are(tmp_path, names) != before
    (tmp_path / "a").unlink()
    gone = as_they_are(tmp_path, names)
    assert gone == as_they_are(tmp_path, ["x", "y", "z"])


def test_the_names_of_run_folders(tmp_path: Path) -> None:
    assert run_names(tmp_path) == []
    for name in ("0002-b", "0001-a", ".status", "sessions"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert run_names(tmp_path) == ["0001-a", "0002-b"]
