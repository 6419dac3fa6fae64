"""What a node of a cluster sees: two processes stand for two nodes."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.edges.clusters import nodecheck


def start(folder: Path, index: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", nodecheck.__name__, str(folder), "word", "2"],
        env={**os.environ, "SLURM_PROCID": str(index), "SLURMD_NODENAME": f"n{index}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_lock_of_one_node_is_tried_by_the_other(tmp_path: Path) -> None:
    (tmp_path / "asked").write_text("word")
    nodes = [start(tmp_path, index) for index in (1, 0)]
    one, zero = (json.loads(node.communicate(timeout=60)[0]) for node in nodes)
    assert (zero["node"], zero["lock"], one["lock"]) == ("n0", "held", "kept")
    assert zero["sees"] and one["sees"]
    assert zero["cores"] == len(os.sched_getaffinity(0))


def test_a_folder_that_is_not_the_callers(tmp_path: Path) -> None:
    (tmp_path / "asked").write_text("of the last time")
    found = nodecheck.look(str(tmp_path), "word", 2, 0, patience_s=0.1)
    assert (found["sees"], found["lock"]) == (False, "not tried")


def test_a_lock_that_is_not_respected_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asked").write_text("word")
    (tmp_path / "held").write_text("word")
    assert nodecheck.look(str(tmp_path), "word", 2, 1, patience_s=0.1)["lock"] == "local"

    def refuse(fd: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    found = nodecheck.look(str(tmp_path), "word", 2, 1, patience_s=0.1)
    assert found["lock"] == "not possible: No locks available"


def test_files_that_arrive_late_are_no_proof(tmp_path: Path) -> None:
    (tmp_path / "asked").write_text("word")
    found = nodecheck.look(str(tmp_path), "word", 2, 1, patience_s=0.1)
    assert found["lock"] == "not tried: files of another node arrive late"
