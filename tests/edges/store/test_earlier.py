"""The states of files that earlier runs wrote last: kept, in two files at most, in nobody's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.edges.store import earlier


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_was_added_is_found_again(cache: Path) -> None:
    assert "7 9 /out/a.pt" not in earlier.get_earlier()
    earlier.add_earlier(["7 9 /out/a.pt"])
    earlier.add_earlier(["8 9 /out/b.pt"])
    assert {"7 9 /out/a.pt", "8 9 /out/b.pt"} <= earlier.get_earlier()


def test_the_older_half_is_left_to_one_other_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier, "LARGEST", 40)
    for number in range(9):
        earlier.add_earlier([f"{number} 9 /out/model.pt"])
    path = earlier.earlier_file()
    assert path is not None and len(list(path.parent.glob("written*"))) == 2
    found = earlier.get_earlier()
    assert "8 9 /out/model.pt" in found and "0 9 /out/model.pt" not in found


def test_a_cache_that_cannot_be_written_to_stops_nothing(cache: Path) -> None:
    cache.write_text("in the way")
    earlier.add_earlier(["7 9 /out/a.pt"])
    assert "7 9 /out/a.pt" not in earlier.get_earlier()
    assert cache.read_text() == "in the way"
