"""Which cluster a campaign runs on."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.cluster.jobs import Cluster
from gpudebug.core.config import RunnerSettings, SlurmSettings
from gpudebug.edges import clusters


def test_the_host_itself_is_no_cluster(tmp_path: Path) -> None:
    assert clusters.cluster_of(None, tmp_path) is None
    assert clusters.cluster_of(RunnerSettings(), tmp_path) is None


def test_slurm_has_the_four_verbs(tmp_path: Path) -> None:
    found: Cluster | None = clusters.cluster_of(RunnerSettings(slurm=SlurmSettings()), tmp_path / "x")
    assert found is not None
    assert found.title == "Slurm"
    assert found.states(()) == ()
    assert not (tmp_path / "x").exists()


def test_outside_of_any_allocation() -> None:
    assert clusters.inside({}) is None
