"""Which counted files were written, whatever their contents are now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository

from gpudebug.edges import git as snapshot

FILES = {
    "train.py": "print(1)\n",
    "pkg/model.py": "x = 1\n",
    "progress/p.md": "# p\n",
    ".gitignore": "runs/\n",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", FILES)


def looked(top: Path) -> snapshot.FileMarks:
    return snapshot.marks(snapshot.identify(top, [top / "progress", top / ".gitignore"]))


def rewritten(path: Path) -> None:
    before, seen = path.read_text(), path.stat()
    path.write_text(before.swapcase())
    path.write_text(before)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def moved(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.write_text("other\n")
    path.with_name("aside").rename(path)


@pytest.mark.parametrize("write", [rewritten, moved])
def test_a_file_that_is_the_same_again_was_written(top: Path, write: Callable[[Path], None]) -> None:
    before = looked(top)
    tree = snapshot.identify(top).tree
    time.sleep(0.02)  # longer than a tick of the file system's clock
    write(top / "pkg" / "model.py")
    assert snapshot.identify(top).tree == tree
    assert snapshot.written_since(before) == ["pkg/model.py"]


def test_what_is_beside_the_code_is_not_looked_at(top: Path) -> None:
    before = looked(top)
    time.sleep(0.02)
    (top / "progress" / "p.md").write_text("# q\n")
    (top / "outputs").mkdir()
    (top / "pkg" / "log.txt").write_text("step 1\n")
    (top / "train.py").read_text()
    git(top, "status")
    commit_all(top)
    assert snapshot.written_since(before) == []


def test_a_file_of_a_submodule_is_looked_at(top: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other", {"lib.py": "y = 1\n"})
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    commit_all(top)
    before = looked(top)
    assert b"sub/lib.py" in before.files and b"sub" not in before.files
    time.sleep(0.02)
    rewritten(top / "sub" / "lib.py")
    assert snapshot.written_since(before) == ["sub/lib.py"]


def test_fifty_thousand_files_are_looked_at_in_a_second(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    paths = [f"{n // 500:03}/{n:05}.py" for n in range(50_000)]
    for path in paths[::500]:
        (folder / path).parent.mkdir(parents=True)
    for path in paths:
        os.close(os.open(folder / path, os.O_CREAT))
    entries = {os.fsencode(path): b"100 0" for path in paths}
    checkout = snapshot.Checkout(folder, "", "", entries, folder, folder)
    began = time.process_time()
    assert len(snapshot.marks(checkout).files) == len(paths)
    assert time.process_time() - began < 1
