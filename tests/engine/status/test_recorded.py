"""What a recorded answer is compared with."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, git

from gpudebug.engine.status import recorded


def test_ages_and_times() -> None:
    now = datetime.datetime.now(datetime.timezone.utc)
    assert recorded.age((now - datetime.timedelta(seconds=90)).isoformat()) == 90
    assert recorded.age((now + datetime.timedelta(days=1)).isoformat()) == 0
    for wrong in (None, "", "then", "2026-11-23T14:02:00"):
        assert recorded.age(wrong) is None
        assert recorded.moment(wrong) is None


def test_a_program_is_looked_up_where_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = recorded.program_of(tmp_path, sys.executable, ".", None)
    assert known[3] is not None
    assert known[3].startswith(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert recorded.program_of(tmp_path, "python3", ".", None)[3] == "command not found"
    found = recorded.program_of(tmp_path, Path(sys.executable).name, ".", str(Path(sys.executable).parent))
    assert found[3] != "command not found"


def test_a_file_that_git_tracks_beside_the_code_shows(told: Campaign) -> None:
    apart = [str(told.folder / name) for name in ("gpudebug.yaml", "progress", "runs")]
    before = recorded.code_of(told.folder, apart)
    assert recorded.code_of(told.folder, apart) == before
    run = next((told.folder / "runs").glob("*-h1"))
    git(told.folder, "add", "-f", str(run / "run.json"))
    after = recorded.code_of(told.folder, apart)
    assert after[:3] == before[:3]
    assert after[3] != before[3]


def test_where_nothing_is_recorded_there_is_no_answer(told: Campaign, tmp_path: Path) -> None:
    (told.private / "status" / "test" / "summary.json").unlink(missing_ok=True)
    assert recorded.recorded(told.folder, None, every=True) is None
    assert recorded.recorded(tmp_path, None, every=True) is None
