"""Processes of another node than the launch's write into files of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.probed import PROBE

from gpudebug.training.probe.gpudebug_probe.nodes import clock, file_of, share_of


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "probe.jsonl"),
        ({"SLURMD_NODENAME": "n1"}, "probe.jsonl"),
        ({"GPUDEBUG_NODE": "n0/1", "SLURMD_NODENAME": "n1"}, "probe.jsonl"),
        ({"GPUDEBUG_NODE": "n0/2", "SLURMD_NODENAME": "n0"}, "probe.jsonl"),
        ({"GPUDEBUG_NODE": "n0/2", "SLURMD_NODENAME": "n1"}, "probe.n1.jsonl"),
        ({"GPUDEBUG_NODE": "n0/2", "SLURMD_NODENAME": "../n1"}, "probe.jsonl"),
        ({"GPUDEBUG_NODE": "n0/2"}, "probe.jsonl"),
        ({"GPUDEBUG_NODE": "/x", "SLURMD_NODENAME": "n1"}, "probe.jsonl"),
    ],
)
def test_a_node_has_a_file_of_its_own_where_the_launch_was_on_another(
    environ: dict[str, str], name: str
) -> None:
    assert file_of("probe.jsonl", environ) == name


@pytest.mark.parametrize(("nodes", "share"), [(2, 1.0), (5, 0.25), (900, 1 / 16)])
def test_the_other_nodes_share_the_room_of_one_file(nodes: int, share: float) -> None:
    environ = {"GPUDEBUG_NODE": f"n0/{nodes}"}
    assert share_of("probe.n1.jsonl", "probe.jsonl", environ) == share
    assert share_of("probe.jsonl", "probe.jsonl", environ) == 1.0


def test_a_clock_is_measured_against_the_file_system(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.utime(fd, (0, 0))
    _, within, stamp = clock(fd)
    assert 0 <= within < 60
    # The best of several touches, of which the file has the last.
    assert 0 < stamp <= os.fstat(fd).st_mtime
    os.close(fd)


CODE = f"""
import os, sys, types
sys.path.append({str(PROBE)!r})
from gpudebug_probe.recorder import Recorder
recorder = Recorder(os.environ["GPUDEBUG_RECORDS_DIR"], types.SimpleNamespace(__version__="9.1"))
recorder.begin()
recorder.iteration()
"""


@pytest.mark.parametrize(("node", "file"), [("n0", "probe.jsonl"), ("n1", "probe.n1.jsonl")])
def test_a_process_tells_of_its_clock_in_a_job_of_several_nodes(tmp_path: Path, node: str, file: str) -> None:
    env = {**os.environ, "GPUDEBUG_RECORDS_DIR": str(tmp_path), "SLURMD_NODENAME": node}
    for several in ({}, {"GPUDEBUG_NODE": "n0/2"}):
        subprocess.run([sys.executable, "-c", CODE], env={**env, **several}, check=True)
    alone = json.loads((tmp_path / "probe.jsonl").read_text().splitlines()[0])
    assert "clock" not in alone
    starts = [json.loads(line) for line in (tmp_path / file).read_text().splitlines()]
    assert len([line for line in starts if line["kind"] == "start"][-1]["clock"]) == 3
