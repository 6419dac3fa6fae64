"""Runs for comparisons: imaginary ones, and recorded ones in folders of their own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.trials import run as evidence

from gpudebug.core.catalogue import frameworks
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.records import DeviceEvidence, DeviceInfo, RunRecord
from gpudebug.core.trainlog.latency import Latency
from gpudebug.edges.store import RunFolder, Workspace
from gpudebug.engine.run import adapters

GPU = DeviceInfo(index=0, uuid="GPU-0", name="NVIDIA H200", kind="nvml", driver="580.1")
CPU = DeviceInfo(index=0, uuid="CPU", name="a CPU", kind="cpu", cores=2.0)


def record(command: str = "python train.py", **more: Any) -> RunRecord:
    """What run.json says of a completed run of `command`."""
    facts: dict[str, Any] = {
        "name": "0001-x",
        "campaign": None,
        "role": "compare",
        "command": command,
        "argv": tuple(shlex.split(command)),
        "cwd": "/repo",
        "interpreter": "/usr/bin/python3 3.11.7",
        "packages": {"torch": "2.5.1"},
        "host": "node1",
        "devices": (GPU,),
        "interval_s": 0.2,
        "start": "2026-01-01T00:00:00+00:00",
        "duration_s": 60.0,
    }
    return RunRecord(**{**facts, **more})


def run(
    command: str = "python train.py",
    *,
    rate: float | None = 10.0,
    wall: float | None = 60.0,
    latency: Latency | float | None = None,
    variables: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    **more: Any,
) -> ComparedRun:
    """A completed run: steps per second, seconds from launch to end, latency in seconds."""
    if isinstance(latency, float):
        latency = Latency(latency, latency, latency, latency, count=100)
    more.setdefault("devices", (DeviceEvidence(index=0, uuid="GPU-0", name="x"),))
    found = record(command, duration_s=wall, **(facts or {}))
    asked = frameworks.steps_of(found.argv, adapters.known())
    return ComparedRun(found, evidence(30.0, rate, **more), latency, variables, asked)


def stored(root: Path, one: ComparedRun, log: str = "") -> RunFolder:
    """`one` as a sealed folder in `root`/runs, named by its record."""
    workspace = Workspace(root)
    folder = RunFolder(workspace.runs / one.record.name, lambda text: text)
    folder.path.mkdir(parents=True)
    folder.write("run.json", one.record)
    folder.write("evidence.json", one.evidence)
    folder.log.write_text(log)
    workspace.seal(folder)
    return folder
