"""Where a run's files are, and which of them may be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpudebug.edges import removal, store
from gpudebug.engine.run.files import Files, files_of


def test_of_a_run_that_goes_on_nothing_is_collected_yet(tmp_path: Path) -> None:
    """What lies there then is the program's own: it may be anything."""
    run = store.Workspace(tmp_path).new_run("h1")
    files = files_of(run)
    assert (files.collected, files.underway().collected) == (run.path, None)
    assert files.without(["train.log"]).collected == run.path


def test_a_server_writes_beside_the_job(tmp_path: Path) -> None:
    files = files_of(store.Workspace(tmp_path).new_run("h1"))
    assert files.folder is not None and files.server_log == files.folder / "server.log"
    alone = Files(tmp_path / "f.csv", tmp_path / "f.log", tmp_path / "notes")
    assert alone.server_log == tmp_path / "f.server.log"


def test_of_files_that_are_not_to_be_read_nothing_is(tmp_path: Path) -> None:
    files = files_of(store.Workspace(tmp_path).new_run("h1"))
    none = files.without(["samples.csv", "train.log"])
    assert not none.samples.is_file() and not none.log.is_file()
    assert (none.notes, none.folder) == (files.notes, files.folder)


def test_another_folder_in_the_place_of_the_reports_is_noticed(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    made = removal.identity_of(reports.lstat())
    files = replace(files_of(store.Workspace(tmp_path).new_run("h1")), reports=reports, made=made)
    assert not files.lost
    reports.rename(tmp_path / "away")
    assert files.lost
    reports.mkdir()
    assert files.lost
