"""Where runs are made: here, unless gpudebug.yaml names a cluster and this is no node of an allocation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpudebug.core import config as configs
from gpudebug.core.text.shell_words import module_argv
from gpudebug.edges import store
from gpudebug.engine.campaign import runner

TEXT = "campaign: test\nworkload: {command: python train.py}\n"
SLURM = "runner: {slurm: {partition: gpu}}\n"


@pytest.fixture(autouse=True)
def no_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_JOB_NODELIST", "GPUDEBUG_CLUSTER"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_runner_it_is_this_host(tmp_path: Path) -> None:
    config = configs.load(TEXT, "gpudebug.yaml")
    assert runner.elsewhere(store.Workspace(tmp_path), config) is None


def test_a_node_of_an_allocation_runs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, workspace = configs.load(TEXT + SLURM, "gpudebug.yaml"), store.Workspace(tmp_path)
    found = runner.elsewhere(workspace, config)
    assert found is not None and found.title == "Slurm"
    # The login shell of `salloc` has the job, and is on no node of it.
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    assert runner.elsewhere(workspace, config) is not None
    monkeypatch.setenv("SLURMD_NODENAME", "n0")
    assert runner.elsewhere(workspace, config) is None
    assert runner.cluster_of(workspace, config) is not None


def test_a_folder_without_a_campaign_names_no_cluster(tmp_path: Path) -> None:
    assert runner.elsewhere_of(tmp_path) is None
    (tmp_path / "gpudebug.yaml").write_text(TEXT + "runner: 3\n")
    assert runner.elsewhere_of(tmp_path) is None


def test_the_job_is_the_worker_with_this_python(tmp_path: Path) -> None:
    job = runner.worker_job(store.Workspace(tmp_path), "test")
    assert job.argv == (*module_argv(sys.executable, runner.WORKER), str(tmp_path))
    assert (job.name, job.cwd) == ("gpudebug-test", str(tmp_path))
    assert "{job}" in job.log
    assert job.env == (
        ("GPUDEBUG_CLUSTER", str(store.private_folder(tmp_path) / "allocation" / "cluster.yaml")),
    )
