"""`clean` measures what is there; what it removes is in the promises about files."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign
from tests.support.deep import deep_folders
from tests.support.looks import look

from gpudebug.core.answers.setup import CleanAnswer, KeptPath, LeftPath
from gpudebug.core.errors import UsageError
from gpudebug.engine.tools.clean import LOOK, Left, found_at, listing, looks_in, remove, survey, under_way
from gpudebug.terminal.setup import clean


def test_a_folder_counts_with_all_in_it_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run" / "deep").mkdir(parents=True)
    (tmp_path / "run" / "deep" / "big").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "run" / "link").symlink_to("/")
    found = found_at("evidence", tmp_path / "run")
    assert found.size >= 1 << 20 and found.size < 2 << 20
    assert found.told() == LeftPath(kind="evidence", path=str(tmp_path / "run"), bytes=found.size)


def test_the_text_names_each_thing_and_what_was_kept() -> None:
    left = Left("unused run", Path("/x/runs/0003-sample"), 3 << 20, (1, 2)).told()
    listed = CleanAnswer(action="listed", campaign="test", left=(left,), bytes=3 << 20, chosen=())
    assert "3.0 MB  unused run  /x/runs/0003-sample" in clean(listed)
    nothing = replace(listed, left=(), bytes=0)
    assert clean(nothing) == "gpudebug left nothing here"
    kept = KeptPath(path="/x", why="is not what gpudebug made there")
    said = clean(replace(nothing, action="cleaned", removed=("/y",), kept=(kept,)))
    assert said == "removed /y\nkept /x: is not what gpudebug made there"


def test_what_accepted_changes_are_worth_together_rests_on_evidence(adopted: Campaign) -> None:
    together = adopted.json("export")["combined"]
    kinds = {Path(left["path"]).name: left["kind"] for left in adopted.json("clean")["left"]}
    assert together["runs_before"] and together["text"]
    assert {kinds[run] for run in (*together["runs_before"], *together["runs_after"])} == {"evidence"}


def test_folders_of_any_depth_have_a_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    with deep_folders(tmp_path):
        assert found_at("evidence", tmp_path).size >= 5000


OLD = 1_700_000_000


def aged(folder: Path) -> None:
    """As if nothing had been written for long."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, (OLD, OLD))


def test_only_what_its_record_says_isfound_at(tmp_path: Path) -> None:
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
    answer = listing(loaded, left, left)
    assert answer.campaign is None
    assert answer.chosen == (str(tmp_path / "gpudebug-why-1"),)
    assert clean(answer).splitlines()[-1] == "Remove with --looks, or --all."
    with pytest.raises(UsageError, match="session a may not remove"):
        remove(loaded, left, left, "a")
    assert remove(loaded, left, [], None).removed == ()
    assert remove(loaded, left, left, None).removed == answer.chosen
    assert [p.name for p in tmp_path.iterdir()] == ["gpudebug-why-2"]
    assert clean(listing(*survey(tmp_path))) == "gpudebug left nothing here"


def test_one_that_is_being_made_stays(tmp_path: Path) -> None:
    made = look(tmp_path, sealed=False)
    assert under_way(made)
    loaded, left = survey(tmp_path)
    (kept,) = remove(loaded, left, left, None).kept
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
    loaded, left = survey(tmp_path)
    assert [one.kind for one in left] == [LOOK]
    assert remove(loaded, left, left, None).removed == (str(made.path),)
