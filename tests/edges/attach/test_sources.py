"""Lines of another process's source: read as it would find them, and no file that its user may not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.edges.attach import sources


def line(file: Path | str, number: int, uid: int | None = None) -> str:
    return sources.line_of(os.getpid(), os.geteuid() if uid is None else uid, None, str(file), number)


def test_a_line_is_read_without_what_could_be_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text('import os\n    login("hf_abcdefghijklmnopqrstuvwxyz")\n')
    assert line(file, 2) == 'login("...")'
    assert line(file, 9) == ""
    assert sources.line_of(os.getpid(), os.geteuid(), str(tmp_path), "train.py", 1) == "import os"


@pytest.mark.parametrize("name", ["<string>", "", "/dev/zero", "/nowhere/x.py", "a\0b"])
def test_what_is_no_file_of_source_has_no_line(name: str) -> None:
    assert line(name, 1) == ""


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert line(tmp_path / "pipe.py", 1) == ""


def test_a_file_that_the_processes_user_may_not_read_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "shadow"
    secret.write_text("root:x:1\n")
    secret.chmod(0o600)
    assert line(secret, 1, uid=os.geteuid() + 1) == ""
    assert line(secret, 1) == "root:x:1"
