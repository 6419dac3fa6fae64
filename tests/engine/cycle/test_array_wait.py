"""Waiting for a job array: until it is over, with why a hypothesis has no verdict."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.arrays import RUNNER, Login
from tests.support.batch import Batch

from gpudebug.edges import store


def test_what_can_never_start_is_ended_with_what_to_change(tmp_path: Path, cluster: Batch) -> None:
    cluster.hold("PartitionTimeLimit")
    login = Login(tmp_path, cluster, count=2)
    login.json("submit")
    error = login.json("wait", status=1)["error"]
    assert "can never start" in error["message"]
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    assert [cluster.job(id)["word"] for id in cluster.jobs()] == ["CANCELLED"] * 2
    assert cluster.calls("scancel") == 1


def test_without_a_cluster_nothing_is_waited_for_that_says_nothing(tmp_path: Path, cluster: Batch) -> None:
    cluster.hold("Resources")
    login = Login(tmp_path, cluster, count=2)
    login.json("submit")
    config = login.campaign.folder / "gpudebug.yaml"
    config.write_text(config.read_text().replace(RUNNER, ""))
    error = login.json("wait", status=1)["error"]
    assert "names no cluster any more" in error["message"]
    assert "put runner: back" in error["next"]


def test_a_wait_that_met_another_command_first_follows_the_array(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=3.0)
    login.json("submit")
    with store.Workspace(login.campaign.folder).claim({"command": "x", "since": "2026-11-26T08:00:00"}):
        waiting = login.campaign.start("wait", "--json", env=login.env)
        time.sleep(1.5)
    assert waiting.wait(120) == 0
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED"]


def test_why_a_hypothesis_has_no_verdict_is_told(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2)
    cluster.hold("Resources")
    login.json("submit")
    kept = [*(login.campaign.folder / ".git" / "gpudebug").glob("campaigns/*/accepted-*.json")]
    assert sorted(path.name for path in kept) == ["accepted-0100.json", "accepted-0200.json"]
    for path in kept:
        path.write_text("{")
    cluster.hold(None)
    ended = login.wait()
    assert "is not what gpudebug writes" in " ".join(ended["notes"])
    assert not any(path.exists() for path in kept)
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
