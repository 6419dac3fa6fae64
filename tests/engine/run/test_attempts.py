"""The number of an attempt: the runs of the same change before it, in a row, that were cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.campaigns import make_campaign

from gpudebug.core.records import Evidence, RunNode
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher, store
from gpudebug.engine.run.attempts import (
    FAILED_STEP,
    NEAR_ITS_END,
    counted,
    ended_by_cluster,
    in_allocation,
    wasted,
)
from gpudebug.engine.run.job import PreparedRun, RunChange

NODE = RunNode(name="n0", allocation="12")
JOB = PreparedRun(
    label="h1",
    role="h1",
    argv=("true",),
    cwd=Path("/"),
    env={},
    change=RunChange(1, digest="c"),
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
    recorded(tmp_path, 8, outcome=None)
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


AWAY = "srun: error: Unable to confirm allocation for job 12: Unable to contact slurm controller"
JOB_OF = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n0", "SLURMD_NODENAME": "n0"}


def test_a_step_that_the_cluster_could_not_start_is_void_and_at_last_the_machinerys(tmp_path: Path) -> None:
    """Never the command's own crash, however often."""
    campaign = make_campaign(
        tmp_path / "repo", command=f"sh -c 'echo \"{AWAY}\" >&2; exit 1'", config=""
    ).pin()
    for _ in range(2):
        done = campaign.run("next", "--json", env=JOB_OF).expect(130)
        assert AWAY in done.json["error"]["message"]
    done = campaign.run("next", "--json", env=JOB_OF).expect(1)
    assert "two runs of the workload failed for reasons outside the training" in done.json["error"]["message"]
    records = [json.loads((campaign.folder / "runs" / n / "run.json").read_text()) for n in campaign.runs()]
    assert {r["outcome"] for r in records} == {"INTERRUPTED"}
    assert [r["node"]["attempt"] for r in records] == [1, 2, 3, 4]
    assert records[2]["reason"] == f"the cluster failed it 3 times in a row: {AWAY}"
    campaign.json("verify")
    # Outside of an allocation it is what the command said.
    done = campaign.run("next", "--json").expect(1)
    assert "does not complete: CRASHED" in done.json["error"]["message"]


def test_a_run_that_failed_as_a_node_fell_silent_is_void(tmp_path: Path) -> None:
    facts = {"reason": None, "sampler": None, "signal": None, "t0": 0.0, "duration_s": 1.0, "leaked": 0}
    evidence = Evidence(run="0001-h1", role="h1", outcome=Outcome.CRASHED, duration_s=1.0)
    crashed = launcher.Launched(outcome=Outcome.CRASHED, exit_status=1, **facts)
    void = ended_by_cluster(crashed, evidence, tmp_path / "train.log", {"n1"}, 1)
    assert void.reason == f"{FAILED_STEP}node n1 did not answer when the run failed"
    assert ended_by_cluster(crashed, evidence, tmp_path / "train.log", (), 1) == crashed
    ended = launcher.Launched(outcome=Outcome.COMPLETED, exit_status=0, **facts)
    assert ended_by_cluster(ended, evidence, tmp_path / "train.log", {"n1"}, 1) == ended
