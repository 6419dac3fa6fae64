"""A folder put in place at once: whatever happens, it is whole, and what is not ours stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.campaigns import contents

from gpudebug.core.errors import StoreError
from gpudebug.edges import removal, temporary
from gpudebug.edges.store.exchange import refuse_foreign, replace_folder

KILLED = """\
import sys
from pathlib import Path
from gpudebug.edges.store.exchange import replace_folder

turn = 0
print("begin", flush=True)
while True:
    turn += 1
    files = {f"{n}.patch": str(turn).encode() * 1000 for n in range(8)}
    replace_folder(Path(sys.argv[1]), files, is_ours=lambda name, head: True)
"""


def ours(name: str, head: bytes) -> bool:
    return name.endswith(".patch") and head.startswith(b"ours")


def test_a_folder_holds_exactly_the_files(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    replace_folder(target, {"1.patch": b"ours 1", "2.patch": b"ours 2"}, is_ours=ours)
    replace_folder(target, {"1.patch": b"ours again"}, is_ours=ours)
    assert {p.name: p.read_bytes() for p in target.iterdir()} == {"1.patch": b"ours again"}
    assert [p.name for p in target.parent.iterdir()] == ["out"]
    assert target.stat().st_mode & 0o777 == 0o755


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    for name, make in {
        "mine.txt": lambda p: p.write_bytes(b"ours"),
        "1.patch": lambda p: p.write_bytes(b"mine"),
        "2.patch": lambda p: p.symlink_to(tmp_path),
        "3.patch": lambda p: p.mkdir(),
        "4.patch": os.mkfifo,
    }.items():
        make(target / name)
        before = contents(tmp_path)
        with pytest.raises(StoreError, match=f"holds {name}, which is not of an export"):
            replace_folder(target, {"5.patch": b"ours"}, is_ours=ours)
        assert contents(tmp_path) == before
        (target / name).rmdir() if (target / name).is_dir() and name[0] == "3" else (target / name).unlink()


def test_places_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"ours")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".git").mkdir()
    (tmp_path / "git").symlink_to(tmp_path / ".git")
    before = contents(tmp_path)
    for name, said in {
        "file": "Not a directory",
        "link": "is a link",
        ".git": "lies inside of .git",
        ".git/x": "lies inside of .git",
        "git/x": "lies inside of .git",
        "file/x": "File exists|Not a directory",
    }.items():
        with pytest.raises(StoreError, match=said) as caught:
            replace_folder(tmp_path / name, {"1.patch": b"ours"}, is_ours=ours)
        assert caught.value.next
        assert contents(tmp_path) == before
    refuse_foreign(tmp_path / "new", ours)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        replace_folder(tmp_path / "out", {"1.patch": b"ours"}, is_ours=ours)
    tmp_path.chmod(0o700)


def test_what_a_kill_leaves_is_whole_or_not_there_and_is_tidied_up(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for turn in range(6):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(turn).uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        if target.exists():
            found = {p.read_bytes() for p in target.iterdir()}
            assert len(found) == 1 and len(list(target.iterdir())) == 8
    replace_folder(target, {"1.patch": b"ours"}, is_ours=lambda name, head: True)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_neighbour_of_any_name_and_age_stays(tmp_path: Path) -> None:
    for name in (".out.backup.tmp", ".out.abcdefgh.tmp", ".gpudebug-1a2b-0123456789abcdef.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_bytes(b"mine")
        os.utime(tmp_path / name, (1, 1))
    before = contents(tmp_path)
    replace_folder(tmp_path / "out", {"1.patch": b"ours"}, is_ours=ours)
    replace_folder(tmp_path / "out", {"1.patch": b"ours"}, is_ours=ours)
    found = contents(tmp_path)
    assert {k: v for k, v in found.items() if not str(k).startswith("out")} == before


def test_what_a_killed_export_left_goes_but_not_what_others_put_there(tmp_path: Path) -> None:
    for name, content in (("1.patch", b"ours"), ("mine", b"mine")):
        (tmp_path / "left").mkdir()
        left = tmp_path / temporary.name_of(removal.identity_of((tmp_path / "left").stat()))
        (tmp_path / "left").rename(left)
        (left / name).write_bytes(content)
        replace_folder(tmp_path / "out", {"1.patch": b"ours"}, is_ours=ours)
        assert left.exists() is (name == "mine")


@pytest.mark.parametrize("moment", range(1, 4))
def test_a_folder_that_takes_the_place_in_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Another folder of that name, or another file in it, before each rename."""
    target, turn = tmp_path / "out", 0
    replace_folder(target, {"1.patch": b"ours"}, is_ours=ours)
    rename = removal._rename_to_free

    def swap_before(parent: int, name: str, to: str, into: int) -> None:
        nonlocal turn
        turn += 1
        if turn == moment:
            if target.exists():
                target.rename(tmp_path / "moved")
            target.mkdir()
            (target / "mine.txt").write_bytes(b"mine")
        rename(parent, name, to, into)

    monkeypatch.setattr(removal, "_rename_to_free", swap_before)
    with pytest.raises(StoreError):
        replace_folder(target, {"2.patch": b"ours"}, is_ours=ours)
    assert (target / "mine.txt").read_bytes() == b"mine"


def test_a_file_that_comes_in_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    replace_folder(target, {"1.patch": b"ours"}, is_ours=ours)
    rename = removal._rename_to_free

    def add_before(parent: int, name: str, to: str, into: int) -> None:
        if name == "out":
            (target / "mine.txt").write_bytes(b"mine")
        rename(parent, name, to, into)

    monkeypatch.setattr(removal, "_rename_to_free", add_before)
    with pytest.raises(StoreError, match=r"holds mine\.txt"):
        replace_folder(target, {"2.patch": b"ours"}, is_ours=ours)
    assert {p.name for p in target.iterdir()} == {"1.patch", "mine.txt"}
    assert os.listdir(tmp_path) == ["out"]
