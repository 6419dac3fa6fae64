"""The sampler of another node as a real process: what it is told, says and leaves."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support import nvml
from tests.support.campaigns import wait_for

from gpudebug.core.cluster.node_reports import messages_in
from gpudebug.core.samples.row import HEADER
from gpudebug.edges.sampler import onnode

CPU = {"kind": "cpu", "cores": 1.0}


class OnNode:
    """The program on node n1."""

    def __init__(self, order: dict[str, Any], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            onnode.node_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**(env or os.environ), "NODE": "n1"},
        )
        self.tell({"variable": "NODE", **order})

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def says(self) -> Any:
        assert self.process.stdout is not None
        lines: list[bytes] = []
        while not (found := messages_in(lines)):
            lines.append(self.process.stdout.readline())
        return found[0]

    def ends(self) -> list[Any]:
        """Its last words, once its input is closed."""
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return messages_in(out.splitlines())


def order(path: Path, **device: Any) -> dict[str, Any]:
    path.touch()
    return {"interval": 0.05, "nodes": {"n1": {"csv": str(path), "device": {**CPU, **device}}}}


def test_it_samples_by_its_own_clock_until_its_input_ends(tmp_path: Path) -> None:
    path = tmp_path / "samples.n1.csv"
    node = OnNode(order(path))
    ready = node.says()
    assert (ready["node"], ready["ready"]) == ("n1", True)
    at, within, stamp = ready["clock"]
    assert 0 <= within < 1
    assert abs((time.time() - stamp) - (time.monotonic() - at)) < 1
    node.tell({"t0": {"n0": 0.0, "n1": time.monotonic() - 100}})
    wait_for(lambda: path.read_text().count("\n") > 4, 30)
    count, *_, last = node.ends()
    # At once, since this run is old already, and then seldom.
    assert count["elapsed"] >= 100
    assert 0 < count["counted"]["bytes"] < last["counted"]["bytes"]
    assert last["notes"]["complete"] is True
    assert last["counted"]["bytes"] == path.stat().st_size
    header, *rows = path.read_text().splitlines(keepends=True)
    assert header == HEADER
    assert all(float(row.partition(",")[0]) >= 100 for row in rows)


def test_what_a_setting_means_there(tmp_path: Path) -> None:
    node = OnNode({"setting": "nvml"}, nvml.standin(tmp_path, "count=2"))
    found = node.says()
    assert node.ends() == []
    assert found["device"] == {"kind": "nvml", "uuids": [nvml.uuid(0), nvml.uuid(1)]}
    assert [d["index"] for d in found["devices"]] == [0, 1]
    none = OnNode({"setting": "nvml"}, nvml.no_driver(tmp_path))
    assert "no NVIDIA driver" in none.says()["error"]["message"]
    assert none.ends() == []


def test_what_it_finds_on_a_node_of_many_gpus_is_in_lines_that_a_scheduler_does_not_split(
    tmp_path: Path,
) -> None:
    node = OnNode({"setting": "nvml"}, nvml.standin(tmp_path, "count=8"))
    out, _ = node.process.communicate(timeout=60)
    lines = out.splitlines()
    assert len(lines) > 1
    assert all(len(line) < 1024 for line in lines)
    (found,) = messages_in(lines)
    assert [d["index"] for d in found["devices"]] == list(range(8))


def test_it_ends_unless_it_is_told_when_the_launch_was(tmp_path: Path) -> None:
    path = tmp_path / "samples.n1.csv"
    for more in ([], [{"t0": {"n2": 1.0}}]):
        node = OnNode(order(path))
        node.says()
        for message in more:
            node.tell(message)
        assert node.ends() == []
        assert path.read_text() == HEADER
    assert OnNode({"nodes": {}}).ends() == []


def test_what_cannot_be_sampled_is_said(tmp_path: Path) -> None:
    path = tmp_path / "samples.n1.csv"
    assert "no such kind" in OnNode(order(path, kind="abacus")).ends()[0]["error"]["message"]
    there = order(path)
    path.unlink()
    assert "cannot write" in OnNode(there).ends()[0]["error"]["message"]


def test_where_nobody_has_the_runs_mark_nobody_is_a_stranger(tmp_path: Path) -> None:
    """Ranks may be started there without our variables, as by ssh."""
    env = nvml.standin(tmp_path, f"gpu 0 util=40 procs={tmp_path / 'pids'}")
    # Whoever computes there before the launch is one all the same.
    for marker, before, strangers in (
        ("run 7", "", {""}),
        ("run 8", "", {"", "1"}),
        ("run 7", "me", {"", "1"}),
    ):
        path = tmp_path / f"{marker}{before}.csv"
        path.touch()
        (tmp_path / "pids").write_text(f"{os.getpid()}\n" if before else "")
        device = {"kind": "nvml", "uuids": [nvml.uuid(0)]}
        order = {"interval": 0.1, "host_interval": 0.2, "marker": marker}
        node = OnNode({**order, "nodes": {"n1": {"csv": str(path), "device": device}}}, env)
        node.says()
        with subprocess.Popen(["sleep", "60"], env={**env, "GPUDEBUG_RUN": "run 8"}) as rank:
            (tmp_path / "pids").write_text(f"{os.getpid()}\n")
            node.tell({"t0": {"n1": time.monotonic()}})
            wait_for(lambda file=path: file.read_text().count("\n") > 15, 60)
            rank.kill()
        node.ends()
        rows = [line.split(",") for line in path.read_text().splitlines()]
        column = rows[0].index("foreign_procs")
        assert {row[column] for row in rows[1:]} == strangers
