"""`gpudebug submit`: the script that is printed is the one that is sent, and one allocation is enough."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.batch import Batch
from tests.support.campaigns import Campaign, make_replay_campaign, record

from gpudebug.core.campaign.decide import Action, ActionKind
from gpudebug.engine.cycle.submit import submit

RUNNER = "runner: {slurm: {partition: gpu, idle: 1m, extra: [--mem=1G]}}\n"


def campaign(folder: Path, runner: str = RUNNER) -> Campaign:
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    return make_replay_campaign(folder / "repo", folder / "recordings", config=runner)


def env(cluster: Batch, **more: str) -> dict[str, str]:
    return {"PATH": f"{cluster.bin}:{os.environ['PATH']}", **more}


def test_the_printed_script_is_what_is_submitted(tmp_path: Path, cluster: Batch) -> None:
    here = campaign(tmp_path).pin()
    printed = here.run("submit", "--dry-run", env=env(cluster)).expect(0).out
    assert "#SBATCH --partition=gpu\n" in printed
    assert "#SBATCH --mem=1G\n" in printed
    assert not (tmp_path / "cluster" / "calls").exists()
    assert not (here.private / "allocation").exists()
    cluster.hold("Resources")
    answer: Any = here.json("submit", env=env(cluster))
    assert (answer["action"], answer["job"]) == ("waiting", "1")
    assert (tmp_path / "cluster" / "1.sh").read_text() == printed
    again: Any = here.json("submit", env=env(cluster))
    assert again["why"] == "job 1 is there already"
    assert cluster.calls("sbatch") == 1


def test_the_node_reads_the_clusters_defaults_of_the_login_node(tmp_path: Path, cluster: Batch) -> None:
    """/etc/gpudebug/cluster.yaml may be on the login node alone, and the settings are pinned."""
    own = tmp_path / "cluster.yaml"
    own.write_text("runner: {slurm: {time: '4:00:00', setup: [module load cuda]}}\n")
    more = {"GPUDEBUG_CLUSTER": str(own)}
    here = campaign(tmp_path)
    here.run("settings", "--accept", env=env(cluster, **more)).expect(0)
    cluster.hold("Resources")
    here.run("submit", env=env(cluster, **more)).expect(0)
    assert "#SBATCH --time=04:00:00" in (tmp_path / "cluster" / "1.sh").read_text()
    own.unlink()
    kept = str(here.private / "allocation" / "cluster.yaml")
    found: Any = here.json("settings", env=env(cluster, GPUDEBUG_CLUSTER=kept))
    assert found["differences"] == []


def test_nothing_is_asked_for_once_nothing_is_to_be_measured(
    tmp_path: Path, cluster: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = campaign(tmp_path).pin()
    monkeypatch.setenv("PATH", env(cluster)["PATH"])
    ended = Action(ActionKind.STOP, "exhausted: 8 tested, the budget is 8")
    monkeypatch.setattr("gpudebug.engine.cycle.submit.over", lambda _: ended)
    answer = submit(here.folder, lambda _: None)
    assert (answer.action, answer.job, answer.why) == ("stop", None, ended.why)
    assert cluster.calls("sbatch") == 0


def test_a_campaign_of_this_host_has_nothing_to_submit(tmp_path: Path, cluster: Batch) -> None:
    done = campaign(tmp_path, "").run("submit", env=env(cluster)).expect(1)
    assert "runs are made on this host itself" in done.err


def test_inside_an_allocation_no_other_is_asked_for(tmp_path: Path, cluster: Batch) -> None:
    around = env(cluster, SLURM_JOB_ID="7", SLURMD_NODENAME="n0", SLURM_JOB_NODELIST="n0")
    answer: Any = campaign(tmp_path).json("submit", env=around)
    assert (answer["action"], answer["job"]) == ("inside", "7")
    assert cluster.calls("sbatch") == 0


def test_a_session_submits_nothing_that_no_person_pinned(tmp_path: Path, cluster: Batch) -> None:
    done = campaign(tmp_path).run("submit", env=env(cluster, GPUDEBUG_SESSION="a"))
    assert done.status == 1
    assert "no person has pinned" in done.err
    assert cluster.calls("sbatch") == 0
