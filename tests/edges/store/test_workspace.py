"""A campaign's folders, and how much of them an element of a job array sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import StoreError
from gpudebug.edges import store


def sealed(workspace: store.Workspace, label: str) -> str:
    run = workspace.new_run(label)
    run.seal()
    return run.name


def test_an_element_sees_what_was_sealed_before_it_and_its_own_runs(tmp_path: Path) -> None:
    campaign = store.Workspace(tmp_path)
    before = sealed(campaign, "a")
    campaign.new_run("under-way")
    element = store.Workspace(tmp_path, element="0100")
    element.runs.mkdir(parents=True)
    own = sealed(element, "b")
    (tmp_path / "runs" / "0205-later").mkdir()
    assert element.run_names() == [before, own] == ["0001-a", "0101-b"]
    assert element.run(before).path == campaign.run(before).path
    assert element.run(own).path == tmp_path / "runs" / ".array" / "0100" / own
    assert own not in campaign.run_names()
    assert [element.owns(name) for name in (before, own)] == [False, True]


def test_numbers_that_are_kept_for_elements_are_left_out(tmp_path: Path) -> None:
    campaign = store.Workspace(tmp_path)
    (tmp_path / "runs" / "0099-a").mkdir(parents=True)
    for name in ("0100", "0200"):
        (tmp_path / "runs" / ".array" / name).mkdir(parents=True)
    assert campaign.new_run("b").name == "0300-b"


def test_an_element_does_not_run_into_the_next_ones_numbers(tmp_path: Path) -> None:
    element = store.Workspace(tmp_path, element="0100")
    (element.runs / "0199-a").mkdir(parents=True)
    with pytest.raises(StoreError, match="99 runs are in it already"):
        element.new_run("b")


@pytest.mark.parametrize(
    ("below", "name"),
    [
        ("runs/.array/0100", "0100"),
        ("runs/.array/0100/0101-a/job", "0100"),
        ("runs/.array", None),
        ("runs/.array/x", None),
        ("other/runs/.array/0100", None),
        ("runs", None),
        (".", None),
    ],
)
def test_the_element_of_a_folder(tmp_path: Path, below: str, name: str | None) -> None:
    (tmp_path / store.CONFIG).write_text("")
    assert store.find_element(tmp_path / below) == (None if name is None else (tmp_path, name))
