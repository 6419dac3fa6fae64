"""Removals: only what gpudebug made goes, and nothing that lies behind a link or another name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.edges import removal


def _made(path: Path) -> removal.Identity:
    return removal.identity_of(path.lstat())


def _folder(path: Path) -> Path:
    (path / "deep" / "deeper").mkdir(parents=True)
    (path / "deep" / "file").write_text("x")
    return path


def test_a_folder_goes_with_all_in_it(tmp_path: Path) -> None:
    made = _made(_folder(tmp_path / "ours"))
    with removal.folder(tmp_path) as parent:
        removal.remove_folder(parent, "ours", made)
        removal.remove_folder(parent, "ours", made)
    assert list(tmp_path.iterdir()) == []


def test_another_folder_of_the_same_name_stays(tmp_path: Path) -> None:
    made = _made(_folder(tmp_path / "ours"))
    (tmp_path / "ours").rename(tmp_path / "moved")
    _folder(tmp_path / "ours")
    with removal.folder(tmp_path) as parent, pytest.raises(removal.NotOurs, match="left as it is"):
        removal.remove_folder(parent, "ours", made)
    assert (tmp_path / "ours" / "deep" / "file").exists()


def test_a_link_to_what_was_recorded_is_not_followed(tmp_path: Path) -> None:
    made = _made(_folder(tmp_path / "ours"))
    (tmp_path / "ours").rename(tmp_path / "moved")
    (tmp_path / "ours").symlink_to("moved")
    with removal.folder(tmp_path) as parent, pytest.raises(removal.NotOurs):
        removal.remove_folder(parent, "ours", made)
    assert (tmp_path / "moved" / "deep" / "file").exists()


def test_links_inside_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    data = _folder(tmp_path / "data")
    ours = _folder(tmp_path / "ours")
    (ours / "deep" / "data").symlink_to(data)
    with removal.folder(tmp_path) as parent:
        removal.remove_folder(parent, "ours", _made(ours))
    assert not ours.exists()
    assert (data / "deep" / "file").exists()


def test_no_name_on_the_way_may_be_a_link(tmp_path: Path) -> None:
    _folder(tmp_path / "real")
    (tmp_path / "runs").symlink_to("real")
    with pytest.raises(removal.NotOurs, match="link"), removal.folder(tmp_path, "runs", "deep"):
        pass


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x"])
def test_a_path_is_no_name(tmp_path: Path, name: str) -> None:
    with removal.folder(tmp_path) as parent, pytest.raises(removal.NotOurs):
        removal.remove_folder(parent, name, _made(tmp_path))


def test_closed_folders_are_opened_on_the_way(tmp_path: Path) -> None:
    ours = _folder(tmp_path / "ours")
    (ours / "deep").chmod(0)
    ours.chmod(0o500)
    with removal.folder(tmp_path) as parent:
        removal.remove_folder(parent, "ours", _made(ours))
    assert not ours.exists()


def test_a_folder_that_is_very_deep_goes_too(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    descriptor = os.open(ours, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    with removal.folder(tmp_path) as parent:
        removal.remove_folder(parent, "ours", _made(ours))
    assert not ours.exists()


def test_a_file_goes_only_if_it_is_the_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("ours")
    made = _made(file)
    file.rename(tmp_path / "kept")
    file.write_text("the user's")
    with removal.folder(tmp_path) as parent:
        with pytest.raises(removal.NotOurs):
            removal.remove_file(parent, "file", made)
        removal.remove_file(parent, "kept", made)
        removal.remove_file(parent, "missing", made)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_empty_folder_goes_and_a_full_one_stays(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    _folder(tmp_path / "full")
    with removal.folder(tmp_path) as parent:
        assert removal.remove_empty(parent, "empty")
        assert not removal.remove_empty(parent, "full")
        assert not removal.remove_empty(parent, "missing")
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
