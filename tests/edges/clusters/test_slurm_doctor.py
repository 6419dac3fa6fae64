"""What a login node says of its Slurm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.fake_slurm import FakeSlurm

from gpudebug.core.cluster.jobs import BatchJob
from gpudebug.core.cluster.node_reports import ClusterFact
from gpudebug.core.config import SlurmSettings
from gpudebug.edges.clusters import slurm_doctor

JOB = BatchJob("gpudebug-x", ("/bin/true",), "/home/me", "/home/me/log")
REPORT = {
    **dict.fromkeys(("host", "boot", "python", "libc", "driver"), "same"),
    "sees": True,
    "lock": "not tried",
    "cores": 4,
}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    found = FakeSlurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", found.path)
    monkeypatch.setenv("GPUDEBUG_CLUSTER", "")
    found.says("sbatch", "slurm 23.11.4\n")
    found.says("sinfo", "main*|up|infinite|1|64|gpu:4|n0\n")
    return found


def at_login(settings: SlurmSettings | None = None) -> dict[str, ClusterFact]:
    return {fact.name: fact for fact in slurm_doctor.login_facts(JOB, settings or SlurmSettings())}


def test_what_is_well(fake: FakeSlurm) -> None:
    fake.says("squeue", "7\n")
    found = at_login()
    assert {fact.result for fact in found.values()} == {"ok"}
    assert found["slurm"].text.startswith("slurm 23.11.4; scripts of this site: sbatch, squeue")
    assert found["controller"].text == "it answers; 1 job of yours there"


def test_without_slurm_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = at_login()
    assert list(found) == ["slurm"]
    assert found["slurm"].text == "not on PATH: sbatch, squeue, scontrol, scancel, srun, sinfo"


def test_a_controller_that_does_not_answer_is_not_asked_on(fake: FakeSlurm) -> None:
    error = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    fake.says("squeue", error=error, status=1)
    found = at_login()
    assert found["controller"].result == "failed"
    assert found["controller"].next == "wait for Slurm's controller, then try again"
    assert "request" not in found


def test_accounting_that_is_off_is_no_fault(fake: FakeSlurm) -> None:
    fake.says("sacct", error="Slurm accounting storage is disabled", status=1)
    assert at_login()["accounting"].text.startswith("off: ")


def test_a_request_that_cannot_be_given(fake: FakeSlurm) -> None:
    found = at_login(SlurmSettings(partition="main", gpus_per_node="8"))["request"]
    assert (found.result, found.text) == ("failed", "no node of partition main has 8 GPUs: gpu:4")


def test_one_node_of_a_partition_with_one(fake: FakeSlurm) -> None:
    fake.says("srun", json.dumps({"node": "n0", **REPORT}) + "\n")
    settings = SlurmSettings(cpus_per_task=4, partition="main")
    found = list(slurm_doctor.node_facts(JOB, settings, "/home/me/x", "word"))
    assert [fact.name for fact in found] == ["folder", "cores"]
    call = fake.calls()[-1]
    assert "--nodes=1 " in call
    assert "--partition=main --cpus-per-task=4 --gpus-per-node=1 " in call
    assert "nodecheck" in call
    assert call.endswith(" /home/me/x word 1")


def test_the_nodes_are_asked_for_as_the_campaigns_job_is(
    fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what srun does not know, and nothing of an allocation around: it would be a step of that."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    extra = ["--mem=1G", "--requeue", "--array=1-3", "-ofile", "--reservation=r"]
    settings = SlurmSettings.model_validate({"gpus_per_node": 0, "extra": extra, "setup": "export X='a b'"})
    script = (fake.folder / "srun").read_text()
    (fake.folder / "srun").write_text(script.replace("exit", f"env > {fake.folder}/srun.env; exit"))
    list(slurm_doctor.node_facts(JOB, settings, "/home/me/x", "word"))
    call = "\n".join(fake.calls())
    assert " --chdir=/home/me --mem=1G --reservation=r /bin/bash -c {" in call
    assert "export X='a b'" in call
    assert "gpus" not in call
    assert "SLURM_JOB_ID" not in fake.got("srun", "env")


def test_nodes_that_are_all_busy(fake: FakeSlurm) -> None:
    fake.says("srun", error="srun: error: Unable to allocate resources: Requested nodes are busy", status=1)
    (found,) = slurm_doctor.node_facts(JOB, SlurmSettings(), "/home/me/x", "word")
    assert found.result == "unknown"
    assert found.text == "not tried: Unable to allocate resources: Requested nodes are busy"
