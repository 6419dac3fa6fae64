"""The number of an attempt: the runs of the same change before it, in a row, that were cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpudebug.core.records import RunNode
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher, store
from gpudebug.engine.run.attempts import NEAR_ITS_END, counted, in_allocation, wasted
from gpudebug.engine.run.job import PreparedRun

NODE = RunNode(name="n0", allocation="12")
JOB = PreparedRun(
    label="h1",
    role="h1",
    argv=("true",),
    cwd=Path("/"),
    env={},
    env_names=(),
    timeout=60.0,
    stall_timeout=None,
    max_output=1 << 20,
    hypothesis=1,
    change_digest="c",
)


def recorded(folder: Path, number: int, **fields: Any) -> None:
    run = folder / "runs" / f"{number:04}-h1"
    run.mkdir(parents=True)
    record = {"role": "h1", "hypothesis": 1, "change_digest": "c", "outcome": "INTERRUPTED", **fields}
    (run / "run.json").write_text(json.dumps(record))


def attempt(folder: Path) -> int | None:
    node = counted(NODE, store.Workspace(folder), JOB)
    assert node is not None
    return node.attempt


def test_what_was_cut_off_in_a_row_is_counted(tmp_path: Path) -> None:
    assert attempt(tmp_path) == 1
    recorded(tmp_path, 1)
    recorded(tmp_path, 2, outcome="COMPLETED")
    recorded(tmp_path, 3)
    recorded(tmp_path, 4, change_digest="other")
    recorded(tmp_path, 5, role="baseline-workload", hypothesis=None)
    recorded(tmp_path, 6)
    (tmp_path / "runs" / "0007-h1").mkdir()
    assert attempt(tmp_path) == 3


def test_outside_of_an_allocation_nothing_is_counted(tmp_path: Path) -> None:
    assert counted(None, store.Workspace(tmp_path), JOB) is None


def test_a_jobs_memory_limit_says_nothing_of_the_change() -> None:
    killed = launcher.Launched(
        outcome=Outcome.CRASHED,
        exit_status=None,
        signal=9,
        reason=None,
        t0=0.0,
        duration_s=1.0,
        leaked=0,
        sampler=None,
        own_limit_mb=512.0,
    )
    assert in_allocation(killed, None) == killed
    within = in_allocation(killed, NODE)
    assert within.own_limit_mb is None
    assert within.reason == "it filled the memory of its job, 512 MB: ask for more, --mem of Slurm"


def made(folder: Path, number: int, allocation: str, **fields: Any) -> None:
    recorded(folder, number, **{"node": {"allocation": allocation}, "outcome": "COMPLETED", **fields})


def cut(folder: Path, number: int, allocation: str) -> None:
    why = f"interrupted by the cluster: job {allocation} {NEAR_ITS_END}"
    made(folder, number, allocation, outcome="INTERRUPTED", reason=why)


def test_allocations_that_ended_before_a_test_did_are_counted(tmp_path: Path) -> None:
    workspace = store.Workspace(tmp_path)
    assert wasted(workspace) == 0
    # One that a person left idle, one with a verdict, and one that ended by itself are none of them.
    cut(tmp_path, 1, "10")
    made(tmp_path, 2, "11")
    cut(tmp_path, 3, "12")
    made(tmp_path, 4, "13")
    cut(tmp_path, 5, "13")
    assert wasted(workspace) == 2
    made(tmp_path, 6, "13.1")
    made(tmp_path, 7, "13.1")
    assert wasted(workspace) == 0
    cut(tmp_path, 8, "13.1")
    assert wasted(workspace) == 3
    (tmp_path / "runs" / "0009-h1").mkdir()
    assert wasted(workspace) == 3
    (tmp_path / "runs/0007-h1/verdict.json").write_text("{}")
    assert wasted(workspace) == 0
    made(tmp_path, 10, "14", node=None)
    assert wasted(workspace) == 0
