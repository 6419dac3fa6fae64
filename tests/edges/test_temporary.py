"""Temporaries: what a kill leaves is proven ours and goes with the next write; nothing else ever goes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.support.processes import fork

from gpudebug.edges import removal, temporary


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def write(folder: Path, name: str = "file", data: bytes = b"new", mode: int | None = None) -> None:
    with removal.folder(folder) as parent:
        temporary.write(parent, name, data, mode)


def killed_at(call: str, folder: Path) -> None:
    """Write in a process that is killed when it would begin `os.CALL`."""

    def run() -> None:
        def die(*_: object, **__: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, call, die)
        write(folder, mode=0o640)

    os.waitpid(fork(run), 0)


@pytest.mark.parametrize("call", ["fstat", "rename", "write", "fchmod", "fsync"])
def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path, call: str) -> None:
    (tmp_path / "file").write_bytes(b"old")
    killed_at(call, tmp_path)
    assert (tmp_path / "file").read_bytes() == b"old"
    write(tmp_path, "another")
    assert names(tmp_path) == {"file", "another"}


def test_a_living_writers_temporary_stays(tmp_path: Path) -> None:
    def write_meanwhile() -> None:
        write(tmp_path, "another")

    with removal.folder(tmp_path) as parent:
        temporary.write(parent, "file", b"new", 0o600, write_meanwhile)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names(tmp_path) == {"file", "another"}


def test_a_copy_of_a_temporary_is_another_file_and_stays(tmp_path: Path) -> None:
    killed_at("fsync", tmp_path)
    (left,) = names(tmp_path)
    data = (tmp_path / left).read_bytes()
    (tmp_path / left).rename(tmp_path / "moved")
    (tmp_path / left).write_bytes(data)
    write(tmp_path)
    assert names(tmp_path) == {left, "moved", "file"}


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a file of another user, which only root may")
def test_a_temporary_of_another_user_stays(tmp_path: Path) -> None:
    killed_at("fsync", tmp_path)
    (left,) = names(tmp_path)
    os.chown(tmp_path / left, 65534, 65534)
    write(tmp_path)
    assert names(tmp_path) == {left, "file"}


def test_links_and_pipes_with_a_temporarys_name_stay(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"")
    link = tmp_path / temporary.name_of(removal.identity_of(mine.stat()))
    link.symlink_to("mine")
    pipe = tmp_path / f".gpudebug-new-{'0' * 32}.tmp"
    os.mkfifo(pipe)
    write(tmp_path)
    assert names(tmp_path) == {"mine", link.name, pipe.name, "file"}


def test_a_workplace_is_gone_with_all_that_was_left_in_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), temporary.workplace("work-", tmp_path) as made:
        assert (made.path.parent, made.path.stat().st_mode & 0o777) == (tmp_path, 0o700)
        (made.path / "below").mkdir()
        (made.path / "below" / "link").symlink_to(tmp_path)
        raise KeyboardInterrupt
    assert names(tmp_path) == set()


@pytest.mark.parametrize("around", ["the folder itself", "the one around it"])
def test_what_is_put_in_the_place_of_a_workplace_stays(tmp_path: Path, around: str) -> None:
    (tmp_path / "at").mkdir()
    mine = tmp_path / "mine"
    with temporary.workplace("work-", tmp_path / "at") as made:
        if around == "the folder itself":
            made.path.rename(tmp_path / "aside")
            mine.mkdir()
            mine.rename(made.path)
        else:
            (tmp_path / "at").rename(tmp_path / "aside")
            (mine / made.path.name).mkdir(parents=True)
            mine.rename(tmp_path / "at")
        (made.path / "thesis").write_text("three years")
    assert (made.path / "thesis").read_text() == "three years"
    if around == "the one around it":
        assert names(tmp_path / "aside") == set()


def test_a_folder_that_takes_the_place_of_a_workplace_at_once_is_not_worked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("three years")
    make = os.mkdir

    def make_and_swap(name: str, mode: int, *, dir_fd: int) -> None:
        make(name, mode, dir_fd=dir_fd)
        (tmp_path / name).rename(tmp_path / "aside")
        (tmp_path / "mine").rename(tmp_path / name)

    monkeypatch.setattr(os, "mkdir", make_and_swap)
    with pytest.raises(OSError, match="in its place"), temporary.workplace("work-", tmp_path):
        pass
    assert [path.read_text() for path in tmp_path.glob("work-*/thesis")] == ["three years"]


def test_a_folder_is_locked_while_it_is_made(tmp_path: Path) -> None:
    with removal.folder(tmp_path) as parent:
        with temporary.new_folder(parent) as made:
            assert list(temporary.left(parent)) == []
            os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=made.fd))
        assert [found.identity for found in temporary.left(parent)] == [made.identity]
        temporary.sweep(parent)
        assert names(tmp_path) == {made.name}, "what a folder holds is for its owner to judge"
