"""Files that grow: what is new of them, and never too much."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.engine.live.tails import Growing, News, last_line


def test_each_look_has_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "f"
    growing = Growing(path, 10)
    assert growing.news() == News(b"") and growing.size is None
    path.write_bytes(b"abc")
    assert growing.news() == News(b"abc") and growing.size == 3
    assert growing.news() == News(b"")
    with path.open("ab") as f:
        f.write(b"def")
    assert growing.news() == News(b"def")
    assert growing.changed == path.stat().st_mtime


def test_of_much_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789abc")
    growing = Growing(path, 10)
    assert growing.news() == News(b"3456789abc", torn=True)
    with path.open("ab") as f:
        f.truncate(5 << 30)
    assert growing.news() == News(bytes(10), torn=True)
    assert growing.size == 5 << 30


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    growing = Growing(path, 100)
    growing.news()
    path.write_bytes(b"abc")
    assert growing.news() == News(b"abc", torn=True)


@pytest.mark.parametrize("kind", ["fifo", "folder", "gone", "closed"])
def test_what_cannot_be_read_has_no_news(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "closed":
        (tmp_path / "file").write_text("x")
        path = tmp_path / "file" / "f"
    assert Growing(path, 10).news() == News(b"")


_RAISED = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    open("/full")
OSError: no space
"""
_EPILOG = "===== usage of job 12 =====\nCPU efficiency: 3 %\n====\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            f"gpudebug: node n1 failed in runner.slurm.setup\n{_EPILOG}",
            "node n1 failed in runner.slurm.setup",
        ),
        (f"gpudebug: of before\n{_RAISED}{_EPILOG}", "OSError: no space"),
        (
            f"{_RAISED}slurmstepd: error: *** JOB 12 CANCELLED ***\n\n",
            "slurmstepd: error: *** JOB 12 CANCELLED ***",
        ),
        ("python: not found\n  \n", "python: not found"),
        ("Traceback (most recent call last):\n  File", "File"),
        ("  \n", ""),
        ("", ""),
    ],
)
def test_the_line_that_says_how_a_worker_ended(tmp_path: Path, text: str, line: str) -> None:
    """Behind it a site's epilog may write of its own."""
    (tmp_path / "log").write_text(text)
    assert last_line(tmp_path / "log") == line
