"""Walking through folders."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.deep import deep_folders

from gpudebug.edges.walk import files_below, walk


def test_it_is_as_the_standard_librarys(tmp_path: Path) -> None:
    for name in ("a/x/1", "a/2", "b/3", "4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "nowhere").symlink_to("gone")
    found = [(place, sorted(folders), sorted(names)) for place, folders, names in walk(tmp_path)]
    expected = [(place, sorted(folders), sorted(names)) for place, folders, names in os.walk(tmp_path)]
    assert sorted(found) == sorted(expected)


def test_what_the_caller_takes_out_is_not_walked_and_its_order_holds(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name / "below").mkdir(parents=True)
    places = []
    for place, folders, _ in walk(tmp_path):
        places.append(os.path.relpath(place, tmp_path))
        folders[:] = sorted((f for f in folders if f != "b"), reverse=True)
    assert places == [".", "c", "c/below", "a", "a/below"]


def test_what_cannot_be_listed_is_handed_on(tmp_path: Path) -> None:
    failed: list[OSError] = []
    assert [*walk(tmp_path / "missing", failed.append)] == []
    assert isinstance(failed[0], FileNotFoundError)


def test_a_folder_of_any_depth_is_walked(tmp_path: Path) -> None:
    """As far as the system opens paths."""
    failed: list[OSError] = []
    with deep_folders(tmp_path):
        assert len([*walk(tmp_path, failed.append)]) > 1500
    assert len(failed) == 1


def test_files_below_come_from_the_top_and_no_deeper_than_asked(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.txt", "a/deep/d.txt", "a/deep/deeper/e.txt", "closed/f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = files_below(tmp_path, deepest=2, most_folders=9, enter=lambda path: path.name != "closed")
    assert [p.name for p in found] == ["b.txt", "c.txt", "d.txt"]
    assert [p.name for p in files_below(tmp_path, deepest=2, most_folders=1)] == ["b.txt"]
    assert list(files_below(tmp_path / "none", deepest=2, most_folders=9)) == []
