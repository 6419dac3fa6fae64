"""The folders of job arrays' elements: made beside each other, taken in once."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges import store

SINCE = "2026-11-26T08:00:00.000000+00:00"


def test_numbers_of_elements_begin_above_all_that_are_taken(tmp_path: Path) -> None:
    (tmp_path / "runs" / "0299-h1").mkdir(parents=True)
    elements = store.Elements(store.Workspace(tmp_path))
    first = elements.make("x", (3, 7), SINCE)
    assert [(n.name, n.hypothesis, n.session) for n in first] == [
        ("0300", 3, "array-0300"),
        ("0400", 7, "array-0400"),
    ]
    assert [n.name for n in elements.make("x", (8,), SINCE)] == ["0500"]
    assert [n.name for n in elements.make("y", (1,), SINCE)] == ["0600"]
    assert [len(elements.notes(campaign)) for campaign in (None, "x", "y", "z")] == [4, 3, 1, 0]


def test_a_folder_that_is_there_already_is_no_new_element(tmp_path: Path) -> None:
    elements = store.Elements(store.Workspace(tmp_path))
    (tmp_path / "runs" / ".array" / "0100" / "0150-h1").mkdir(parents=True)
    (tmp_path / "runs" / ".array" / "0200").write_text("")
    (note,) = elements.make("x", (1,), SINCE)
    assert note.name == "0300"
    assert store.Workspace(tmp_path, element=note.name).run_names() == []


def test_a_run_is_taken_in_as_it_is_and_replaces_none(tmp_path: Path) -> None:
    elements = store.Elements(store.Workspace(tmp_path))
    (note,) = elements.make("x", (1,), SINCE)
    own = store.Workspace(tmp_path, element=note.name)
    for label in ("baseline-workload", "h1"):
        own.new_run(label).seal()
    before = {name: own.run(name).digests() for name in own.run_names()}
    assert elements.take_in(note) == []
    assert elements.take_in(note) == []
    campaign = store.Workspace(tmp_path)
    assert {name: campaign.run(name).digests() for name in campaign.run_names()} == before
    assert all(campaign.run(name).sealed for name in before)
    # Numbers of another element are not this one's to give.
    (elements.path(note) / "0201-h2").mkdir()
    own.new_run("h1").seal()
    (tmp_path / "runs" / "0101-h1").write_text("taken")
    (aside,) = elements.take_in(note)
    assert aside.read_text() == "taken"
    assert campaign.run("0101-h1").sealed
    assert not (tmp_path / "runs" / "0201-h2").exists()


def test_a_note_that_is_not_ours_is_no_element(tmp_path: Path) -> None:
    elements = store.Elements(store.Workspace(tmp_path))
    (note, other) = elements.make("x", (1, 2), SINCE)
    sound = json.loads((elements.folder / note.name / "element.json").read_text())
    wrong = (
        {"campaign": None},
        {"name": "0900"},
        {"hypothesis": 0},
        {"since": "now)\n"},
        {"array": "-u"},
        {"array": "../1"},
    )
    for content in ("", "[]", *(json.dumps({**sound, **one}) for one in wrong)):
        (elements.folder / note.name / "element.json").write_text(content)
        assert elements.notes() == (other,)
    (elements.folder / note.name / "element.json").unlink()
    os.mkfifo(elements.folder / note.name / "element.json")
    for name in ("x", "150", "0150", "0000", "00700", "٠١٠٠"):
        (elements.folder / name).mkdir()
        (elements.folder / name / "element.json").write_text(json.dumps({**sound, "name": name}))
    (elements.folder / "0800").symlink_to("0200")
    assert elements.notes() == (other,)
    assert [n.name for n in elements.make("x", (3,), SINCE)] == ["0300"]


def test_a_file_in_the_place_of_all_is_none(tmp_path: Path) -> None:
    elements = store.Elements(store.Workspace(tmp_path))
    elements.folder.parent.mkdir(parents=True)
    elements.folder.write_text("")
    assert elements.notes() == ()
    with pytest.raises(StoreError, match="cannot make the folder"):
        elements.make("x", (1,), SINCE)


def test_a_worker_is_seen_while_it_holds_its_element(tmp_path: Path) -> None:
    elements = store.Elements(store.Workspace(tmp_path))
    (note,) = elements.make("x", (1,), SINCE)
    assert not elements.worked_on(note)
    with elements.take(note, {"pid": 1}):
        assert elements.worked_on(note)
    elements.put(replace(note, ended="x"))
    assert elements.note(note.name) == replace(note, ended="x")
    elements.remove(note)
    assert elements.notes() == ()
