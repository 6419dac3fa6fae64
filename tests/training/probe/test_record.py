"""Processes of another node than the launch's write into files of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.probed import PROBE

from gpudebug.training.probe.gpudebug_probe import record
from gpudebug.training.probe.gpudebug_probe.record import clock, file_of, share_of


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


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("150000 100000\n", 1.5),
        ("max 100000\n", None),
        ("", None),
        (None, None),
        ("1 0", None),
        ("a b", None),
    ],
)
def test_a_quota_of_the_control_group_is_in_cores(text: str | None, cores: float | None) -> None:
    assert record._quota(text) == cores


def test_the_smaller_of_affinity_and_quota_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    for quota, cores in (("50000 100000", 0.5), ("900000 100000", 4.0), (None, 4.0)):
        monkeypatch.setattr(record, "_read", lambda _, quota=quota: quota)
        assert record.cores() == cores


def test_what_is_not_set_is_unknown_and_slurm_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in record.VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURMD_NODENAME", "gpu017")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8" * 999)
    found = record.surroundings()
    assert (found["node"], found["visible"], found["omp"]) == ("gpu017", None, None)
    assert len(found["slurm_cpus"]) == record.LONGEST
    monkeypatch.delenv("SLURMD_NODENAME")
    assert record.surroundings()["node"] == os.uname().nodename


def test_processes_of_one_number_are_told_apart_by_their_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    here = record.host()
    assert here == record.host()
    monkeypatch.setenv("SLURMD_NODENAME", "gpu017")
    slurm = record.host()
    # A second host whose name is the same, as a container's may be.
    monkeypatch.setattr(record, "_boot", lambda: "another")
    booted = record.host()
    stat = os.stat

    class Spaced:
        st_ino = 7

    monkeypatch.setattr(os, "stat", lambda path: Spaced() if path == "/proc/self/ns/pid" else stat(path))
    assert len({here, slurm, booted, record.host()}) == 4


def test_the_clock_is_named_by_the_boot() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id")
    expected = boot.read_text().strip() if boot.is_file() else None
    assert record.surroundings()["boot"] == expected


@pytest.mark.parametrize(
    ("cpus", "text"), [({0, 1, 2, 3, 8}, "0-3,8"), ({5}, "5"), ({1, 3, 4, 127}, "1,3-4,127"), (set(), "")]
)
def test_the_cpus_that_a_process_may_run_on(
    cpus: set[int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cpus)
    assert record.affinity() == text
    assert record.surroundings()["affinity"] == text
    monkeypatch.delattr(os, "sched_getaffinity")
    assert record.affinity() is None
