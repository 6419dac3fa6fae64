"""One command of a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.fake_slurm import FakeSlurm

from gpudebug.core.config import RunnerSettings, SlurmSettings
from gpudebug.core.errors import ClusterError
from gpudebug.edges import clusters
from gpudebug.edges.clusters import commands
from gpudebug.edges.clusters.commands import step_beside


def test_a_users_own_formats_and_language_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSlurm(tmp_path / "bin", "sbatch")
    monkeypatch.setenv("PATH", fake.path)
    for name in ("SQUEUE_FORMAT", "SACCT_FORMAT", "SLURM_CONF", "LC_ALL"):
        monkeypatch.setenv(name, "mine")
    commands.ask("sbatch", stdin="x")
    lines = fake.got("sbatch", "env").splitlines()
    assert "SLURM_CONF=mine" in lines
    assert "LC_ALL=C" in lines
    assert not [line for line in lines if line.startswith(("SQUEUE_", "SACCT_"))]


def test_a_command_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    answer = commands.ask("squeue")
    assert answer.missing
    assert answer.why == "squeue is not on PATH"


def test_a_command_that_does_not_end_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(commands, "LONGEST_S", 0.2)
    answer = commands.ask("squeue")
    assert answer.late
    assert not answer.missing


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", fake.path)
    return fake


def test_a_step_shares_with_the_training_and_is_one_task_a_node(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.says("srun", "slurm 23.02.7\n")
    # What the job asked for as a whole would be asked of this step.
    asked = {"SLURM_GPUS", "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_TASK", "SLURM_LABELIO"}
    asked |= {"SLURM_UNBUFFEREDIO", "SLURM_CPUS_PER_GPU", "SLURM_TRES_BIND"}
    for name in asked:
        monkeypatch.setenv(name, "8")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    runner = RunnerSettings(
        slurm=SlurmSettings.model_validate({"srun": ["--mpi=pmix", "--ntasks-per-node=8"]})
    )
    step = clusters.beside(runner, ("n1", "n2"))
    assert step.nodes == ("n1", "n2")
    assert {"--overlap", "--nodes=2", "--ntasks=2", "--nodelist=n1,n2"} <= set(step.argv)
    # The last one of a kind counts, and the user's are first.
    assert step.argv.index("--ntasks-per-node=8") < step.argv.index("--ntasks-per-node=1")
    assert step.argv.index("--mpi=pmix") < step.argv.index("--mpi=none")
    env = dict(step.env)
    assert env["SLURM_JOB_ID"] == "7"
    assert not asked & env.keys()
    assert slurm.calls() == ["srun --version"]


@pytest.mark.parametrize("version", ["slurm 21.08.8-2", "slurm-wlm 20.11.9"])
def test_a_step_of_an_older_slurm_would_make_the_training_wait(slurm: FakeSlurm, version: str) -> None:
    slurm.says("srun", version + "\n")
    with pytest.raises(ClusterError, match="shares memory and GPUs"):
        step_beside((), ("n1",))


def test_a_command_that_is_missing_or_says_nothing_is_an_error(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slurm.says("srun", "", error="srun: fatal: no configuration\n", status=1)
    with pytest.raises(ClusterError, match="no configuration"):
        step_beside((), ("n1",))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="srun is not on PATH"):
        step_beside((), ("n1",))
