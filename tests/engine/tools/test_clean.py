"""`clean` measures what is there; what it removes is in the promises about files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.campaigns import Campaign
from tests.support.deep import deep_folders

from gpudebug.core.answers.setup import CleanAnswer, KeptPath, LeftPath
from gpudebug.engine.tools.clean import Left, _one
from gpudebug.terminal.setup import clean


def test_a_folder_counts_with_all_in_it_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run" / "deep").mkdir(parents=True)
    (tmp_path / "run" / "deep" / "big").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "run" / "link").symlink_to("/")
    found = _one("evidence", tmp_path / "run")
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
        assert _one("evidence", tmp_path).size >= 5000
