"""What `gpudebug why` left is known by its record, and left alone while it is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.looks import look

from gpudebug.core.errors import UsageError
from gpudebug.engine.tools.clean import LOOK, listing, remove, survey
from gpudebug.engine.tools.looks import looks_in, under_way
from gpudebug.terminal.setup import clean

OLD = 1_700_000_000


def aged(folder: Path) -> None:
    """As if nothing had been written for long."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, (OLD, OLD))


def test_only_what_its_record_says_is_one(tmp_path: Path) -> None:
    made = [look(tmp_path).path for _ in range(10)]
    (tmp_path / "gpudebug-why-11").mkdir()
    (tmp_path / "gpudebug-why-11" / "mine.txt").write_text("mine")
    (tmp_path / "gpudebug-why-12").write_text("")
    (tmp_path / "gpudebug-why-13").symlink_to(made[0])
    made[1].rename(tmp_path / "gpudebug-why-14")
    look(tmp_path, role="sample").path.rename(tmp_path / "kept")
    found = [one.path.name for one in looks_in(tmp_path)]
    assert found == [f"gpudebug-why-{n}" for n in (1, *range(3, 11))]
    assert list(looks_in(tmp_path / "nowhere")) == []


def test_without_a_campaign_they_are_listed_and_removed_by_a_person(tmp_path: Path) -> None:
    look(tmp_path)
    (tmp_path / "gpudebug-why-2").mkdir()
    loaded, left = survey(tmp_path)
    assert loaded is None
    answer = listing(loaded, left, [LOOK])
    assert answer.campaign is None
    assert answer.chosen == (str(tmp_path / "gpudebug-why-1"),)
    assert clean(answer).splitlines()[-1] == "Remove with --looks."
    with pytest.raises(UsageError, match="session a may not remove"):
        remove(loaded, left, [LOOK], "a")
    assert remove(loaded, left, [], None).removed == ()
    assert remove(loaded, left, [LOOK], None).removed == answer.chosen
    assert [p.name for p in tmp_path.iterdir()] == ["gpudebug-why-2"]
    assert clean(listing(*survey(tmp_path))) == "gpudebug left nothing here"


def test_one_that_is_being_made_stays(tmp_path: Path) -> None:
    made = look(tmp_path, sealed=False)
    assert under_way(made)
    loaded, left = survey(tmp_path)
    (kept,) = remove(loaded, left, [LOOK], None).kept
    assert "still at work" in kept.why
    aged(made.path)
    assert not under_way(made)
    env = {**os.environ, "GPUDEBUG_RUN": str(made.path)}
    with subprocess.Popen([sys.executable, "-c", "input()"], env=env, stdin=subprocess.PIPE) as run:
        try:
            assert under_way(made)
        finally:
            run.kill()
    assert not under_way(made)
    assert remove(*survey(tmp_path), [LOOK], None).removed == (str(made.path),)
