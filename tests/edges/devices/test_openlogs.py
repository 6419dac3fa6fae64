"""Files of loggers that a process holds open to write, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.edges.devices.openlogs import OpenLogs, is_like_log
from gpudebug.edges.devices.proctree import ProcessTree

WRITER = "import sys; f = open(sys.argv[1], 'w'); print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("path", "like"),
    [
        ("/a/runs/events.out.tfevents.1700000000.host.7.0", True),
        ("/a/wandb/run-1/run-1.wandb", True),
        ("/a/progress.csv", True),
        ("/a/metrics.jsonl", True),
        ("/a/progress.csv (deleted)", False),
        ("/a/model.pt", False),
        ("pipe:[123]", False),
    ],
)
def test_names_of_loggers(path: str, like: bool) -> None:
    assert is_like_log(path) is like


def test_what_is_open_to_write_is_seen_and_what_is_read_is_not(tmp_path: Path) -> None:
    for name in ("read.csv", "other.txt", "closed.csv"):
        (tmp_path / name).write_text("")
    found = OpenLogs()
    with (
        (tmp_path / "progress.csv").open("a"),
        (tmp_path / "both.jsonl").open("w+"),
        (tmp_path / "read.csv").open(),
        (tmp_path / "other.txt").open("a"),
    ):
        found.look([os.getpid(), 2**22 - 1])
    found.look([os.getpid()])
    own = [path for path in found.paths if path.startswith(str(tmp_path))]
    assert sorted(own) == [str(tmp_path / "both.jsonl"), str(tmp_path / "progress.csv")]


def test_it_looks_often_at_first_and_seldom_later(tmp_path: Path) -> None:
    found = OpenLogs()
    for _ in range(11):
        found.look([])
    with (tmp_path / "late.csv").open("w"):
        for look in range(5):
            found.look([os.getpid()])
            seen = str(tmp_path / "late.csv") in found.paths
            assert seen is (look >= 3)


def test_the_process_tree_tells_of_its_members_alone(tmp_path: Path) -> None:
    """This process is the root, and no member: what it writes is not the job's."""
    tree = ProcessTree(os.getpid())
    words = [sys.executable, "-c", WRITER, str(tmp_path / "job.csv")]
    with (
        (tmp_path / "mine.csv").open("w"),
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job,
    ):
        assert job.stdout is not None
        job.stdout.readline()
        tree.read()
        job.communicate()
    assert tree.written == [str(tmp_path / "job.csv")]
