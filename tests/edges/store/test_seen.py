"""What else was seen of a run, found by its samples alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.edges import store
from gpudebug.edges.store import seen


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def samples(folder: Path, text: str) -> Path:
    path = folder / "F.csv"
    path.write_text(text)
    return path


def test_it_is_of_exactly_these_samples_wherever_they_lie(tmp_path: Path) -> None:
    path = samples(tmp_path, "1,2\n")
    store.put_seen(path, {"a": 1})
    moved = path.rename(tmp_path / "G.csv")
    assert store.get_seen(moved) == {"a": 1}
    moved.write_text("1,3\n")
    assert store.get_seen(moved) is None


def test_the_newest_are_kept(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MOST", 2)
    for number in range(4):
        path = samples(tmp_path, str(number))
        store.put_seen(path, {"n": number})
        for file in cache.rglob("*.json"):
            os.utime(file, (file.stat().st_mtime - 10, file.stat().st_mtime - 10))
    assert [store.get_seen(samples(tmp_path, str(n))) for n in range(4)] == [None, None, {"n": 2}, {"n": 3}]


def test_others_cannot_read_it(tmp_path: Path, cache: Path) -> None:
    store.put_seen(samples(tmp_path, "1"), {})
    (file,) = cache.rglob("*.json")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_cache_that_cannot_be_written_or_read_is_none(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file")
    store.put_seen(samples(tmp_path, "1"), {"a": 1})
    assert store.get_seen(tmp_path / "F.csv") is None
    assert store.get_seen(tmp_path / "missing.csv") is None


def test_what_is_no_document_is_none(tmp_path: Path, cache: Path) -> None:
    path = samples(tmp_path, "1")
    store.put_seen(path, {"a": 1})
    (file,) = cache.rglob("*.json")
    file.write_text("[1")
    assert store.get_seen(path) is None


def test_a_link_in_the_cache_is_not_followed(tmp_path: Path, cache: Path) -> None:
    path = samples(tmp_path, "1")
    store.put_seen(path, {"a": 1})
    (file,) = cache.rglob("*.json")
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert store.get_seen(path) is None
