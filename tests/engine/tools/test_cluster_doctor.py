"""`gpudebug doctor --cluster`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import make_campaign
from tests.support.slurm import SlurmSystem


def test_a_campaign_of_this_host_has_no_cluster(tmp_path: Path) -> None:
    done = make_campaign(tmp_path / "repo").run("doctor", "--cluster").expect(1)
    assert "runs are made on this host itself" in done.err


def test_it_checks_the_cluster_alone(tmp_path: Path) -> None:
    make_campaign(tmp_path / "repo").run("doctor", "--cluster", "--ask").expect(2)


@pytest.mark.slow
def test_two_nodes_of_a_real_slurm(tmp_path: Path, slurm: SlurmSystem) -> None:
    campaign = make_campaign(tmp_path / "repo", config="runner: {slurm: {}}\n")
    answer: Any = campaign.json("doctor", "--cluster", env=slurm.env, timeout=120)
    found = {check["name"]: check for check in answer["checks"]}
    assert answer["ok"], found
    assert found["request"]["found"] == "the partition has 1 node with gpu:1"
    assert found["folder"]["found"] == "n0, n1 see the campaign's folder"
    assert found["locks"]["found"] == "a lock of one node is respected on the other"
    assert found["hosts"]["result"] == "warning"
    assert slurm.queue() == {}
