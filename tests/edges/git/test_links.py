"""A change in a linked folder is noticed and named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudebug.edges.git import links
from gpudebug.edges.git.links import fingerprint, linked_changes


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    top = tmp_path / "repo"
    for name in ("data/a/x.bin", "data/b/y.bin", "store/z.bin", ".venv/lib/m.py", "other/o.txt"):
        path = (tmp_path if name.startswith("store") else top) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1234")
    (top / "outside").symlink_to("../store")
    (top / "data" / "link").symlink_to("a")
    return top


LINKS = (".venv", "data", "outside", "missing")


def seen(checkout: Path) -> bytes:
    return json.dumps(fingerprint(checkout, LINKS)._asdict()).encode()


def same_size(top: Path) -> None:
    (top / "data" / "a" / "x.bin").write_text("4321")


def longer_at_the_same_time(top: Path) -> None:
    path = top / "data" / "a" / "x.bin"
    at = path.stat()
    path.write_text("123456")
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))


def through_the_link(top: Path) -> None:
    (top / "outside" / "z.bin").write_text("changed")


def link_turned(top: Path) -> None:
    (top / "data" / "link").unlink()
    (top / "data" / "link").symlink_to("b")


def byte_code(top: Path) -> None:
    (top / ".venv" / "lib" / "__pycache__").mkdir()
    (top / ".venv" / "lib" / "__pycache__" / "m.pyc").write_text("x")
    (top / ".venv" / "lib" / "m.pyc").write_text("x")


CHANGES = {
    same_size: ["data/a/x.bin"],
    longer_at_the_same_time: ["data/a/x.bin"],
    through_the_link: ["outside/z.bin"],
    link_turned: ["data/link"],
    byte_code: [],
    lambda top: (top / "data" / "new").write_text("x"): ["data/new"],
    lambda top: (top / "missing").write_text("x"): ["missing"],
    lambda top: (top / ".venv" / "lib" / "m.py").unlink(): [".venv/lib/m.py"],
    lambda top: (top / "other" / "o.txt").write_text("x"): [],
    lambda top: (top / "data" / "a" / "x.bin").read_text(): [],
}


@pytest.mark.parametrize("change, named", CHANGES.items())
def test_what_changed_is_named(checkout: Path, change: Callable[[Path], object], named: list[str]) -> None:
    before = seen(checkout)
    assert linked_changes(checkout, LINKS, before) == []
    change(checkout)
    assert linked_changes(checkout, LINKS, before) == named


def test_many_are_counted(checkout: Path) -> None:
    before = seen(checkout)
    for n in range(50):
        (checkout / "data" / f"n{n:02}").touch()
    said = linked_changes(checkout, LINKS, before)
    assert said == [*(f"data/n{n:02}" for n in range(20)), "… and 30 more"]


def test_of_too_many_only_what_was_seen_twice_is_compared(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(50):
        (checkout / "data" / f"n{n:02}").touch()
    monkeypatch.setattr(links, "MOST_FILES", 10)
    before = seen(checkout)
    assert (len(json.loads(before)["files"]), json.loads(before)["whole"]) == (10, False)
    (checkout / "data" / "a" / "first").touch()
    assert linked_changes(checkout, LINKS, before) == []
    (checkout / ".venv" / "lib" / "m.py").write_text("changed")
    assert linked_changes(checkout, LINKS, before) == [".venv/lib/m.py"]
