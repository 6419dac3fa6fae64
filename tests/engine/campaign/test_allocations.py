"""What of a campaign counts in which allocation. Variables that Slurm sets on a node stand for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign
from tests.support.fake_slurm import FakeSlurm

from gpudebug.edges import store
from gpudebug.engine.campaign.allocations import living_jobs

SLURM = "runner:\n  slurm: {}\n"


def inside(job: str, node: str = "n0", **more: str) -> dict[str, str]:
    return {"SLURMD_NODENAME": node, "SLURM_JOB_ID": job, "SLURM_JOB_NODELIST": node, **more}


def test_an_allocation_records_its_own_baseline_and_judges_by_it(recorded: Campaign) -> None:
    assert recorded.json("baseline", "workload", env=inside("412"))["action"] == "recorded_baseline"
    recorded.propose("--set --lr=0.2")
    assert recorded.json("status")["next"]["action"] == "test"
    why = "it was measured in allocation 412, and this is 412.1"
    again = inside("412", SLURM_RESTART_COUNT="1")
    assert why in recorded.json("status", env=again)["next"]["why"]
    answer = recorded.json("next", env=again)
    assert (answer["action"], why in answer["why"]) == ("recorded_baseline", True)
    assert recorded.json("next", env=again)["verdict"] == "VALIDATED"


def test_a_login_node_takes_the_nodes_word_for_what_it_cannot_see(recorded: Campaign) -> None:
    with recorded.config.open("a", encoding="utf-8") as f:
        f.write(SLURM)
    recorded.json("baseline", "workload", env=inside("412", CUDA_VISIBLE_DEVICES="0"))
    recorded.propose("--set --lr=0.2")
    assert recorded.json("status")["next"]["action"] == "test"
    text = recorded.config.read_text()
    recorded.config.write_text(text.replace("device:", "device: cpu:1 #", 1))
    assert "device changed" in recorded.json("status")["next"]["why"]


@pytest.mark.parametrize(
    ("answer", "lives"),
    [
        ("412|RUNNING|None|n0|1:00", True),
        ("412|PENDING|Resources||1:00", False),
        ("", None),
    ],
)
def test_the_campaigns_cluster_knows_which_jobs_live(
    recorded: Campaign, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, lives: bool | None
) -> None:
    workspace = store.Workspace(recorded.folder)
    assert living_jobs(workspace)("412") is None  # No cluster is configured.
    with recorded.config.open("a", encoding="utf-8") as f:
        f.write(SLURM)
    slurm = FakeSlurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", slurm.path)
    slurm.says("squeue", f"{answer}\n", status=0 if answer else 1)
    assert living_jobs(workspace)("412") is lives
