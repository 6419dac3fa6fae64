"""Where the catalogue's files lie, which of a repository's are read, and which are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.core.errors import CatalogueError
from gpudebug.edges import catalogue


def put(root: Path, *names: str, text: str = "id: x\n") -> None:
    for name in names:
        path = root / "hypotheses" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_is_shipped_is_found() -> None:
    causes, frameworks = catalogue.shipped(), catalogue.shipped("frameworks")
    assert len(causes) > 50
    assert {file.group for file in causes} >= {"data-loading", "sync", "python"}
    assert "lerobot.yaml" in {Path(file.shown).name for file in frameworks}
    assert {file.group for file in frameworks} == {None}


def test_without_its_files_the_installation_is_broken() -> None:
    with pytest.raises(CatalogueError, match="gpudebug's nothing files are missing"):
        catalogue.shipped("nothing")


def test_own_files_are_read_in_order(tmp_path: Path) -> None:
    put(tmp_path, "b.yaml", "a.yml", "catalogue/sync/deep/c.yaml", "catalogue/d.yaml")
    put(tmp_path, "patches/e.yaml", ".hidden.yaml", "notes.md", "catalogue/.x/f.yaml", "catalogue/g.yaml~")
    files = catalogue.own(tmp_path)
    assert [file.shown for file in files] == [
        "hypotheses/a.yml",
        "hypotheses/b.yaml",
        "hypotheses/catalogue/d.yaml",
        "hypotheses/catalogue/sync/deep/c.yaml",
    ]
    assert [file.group for file in files] == [None, None, None, "deep"]


def test_a_repository_without_any(tmp_path: Path) -> None:
    assert catalogue.own(tmp_path) == ()


def test_a_linked_folder_is_left_out(tmp_path: Path) -> None:
    put(tmp_path / "other", "x.yaml")
    put(tmp_path / "mine", "catalogue/a.yaml")
    (tmp_path / "mine/hypotheses/catalogue/link").symlink_to(tmp_path / "other/hypotheses")
    assert [file.shown for file in catalogue.own(tmp_path / "mine")] == ["hypotheses/catalogue/a.yaml"]


def test_gpudebugs_own_repository_ships_what_it_has() -> None:
    assert catalogue.own(catalogue.shipped_folder("catalogue").parents[1]) == ()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), "leads out of the repository"),
        (lambda path: path.symlink_to(path.name), "circle|cannot read"),
        (lambda path: path.symlink_to("gone.yaml"), "cannot read"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.write_text("x" * 200_000), "larger than 128 KiB"),
        (lambda path: path.write_bytes(b"a: 1\nb: \xff\n"), "not UTF-8"),
    ],
    ids=["outside", "circle", "gone", "fifo", "large", "binary"],
)
def test_odd_files_are_refused_by_name(tmp_path: Path, make: object, said: str) -> None:
    put(tmp_path, "a.yaml")
    assert callable(make)
    make(tmp_path / "hypotheses" / "odd.yaml")
    with pytest.raises(CatalogueError, match=said) as e:
        catalogue.own(tmp_path)
    assert "odd.yaml" in str(e.value.file)
    assert e.value.line == (2 if said == "not UTF-8" else None)
    assert e.value.next


def test_too_many_files_are_no_catalogue(tmp_path: Path) -> None:
    put(tmp_path, *(f"catalogue/sync/c{i}.yaml" for i in range(catalogue.MOST_FILES + 1)))
    with pytest.raises(CatalogueError, match="more than 500 files"):
        catalogue.own(tmp_path)
