"""What is removed later is what was looked at, or it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges.store import leftovers


def _made(path: Path) -> tuple[int, int]:
    return path.lstat().st_dev, path.lstat().st_ino


def test_what_took_the_place_of_what_was_listed_is_kept(tmp_path: Path) -> None:
    for make in (Path.mkdir, Path.touch):
        (tmp_path / "run").mkdir()
        made = _made(tmp_path / "run")
        (tmp_path / "run").rename(tmp_path / "moved")
        make(tmp_path / "run")
        with pytest.raises(StoreError):
            leftovers.remove(tmp_path / "run", made)
        leftovers.remove(tmp_path / "run", _made(tmp_path / "run"))
        leftovers.remove(tmp_path / "moved", made)
        leftovers.remove(tmp_path / "moved", made)
    assert leftovers.temporaries(tmp_path) == []
    assert leftovers.temporaries(tmp_path / "nowhere") == []
