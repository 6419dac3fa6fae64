"""What elements of a job array measured becomes the campaign's once, whatever happens meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.arrays import Login
from tests.support.batch import Batch
from tests.support.campaigns import wait_for

from gpudebug.core.errors import BusyError
from gpudebug.edges import store
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle.taken_in import claim_in, take_in


def test_what_the_cluster_ends_is_tested_again(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=20.0)
    login.json("submit")
    wait_for(lambda: all(any(login.elements.path(n).glob("*-baseline-*")) for n in login.elements.notes()))
    assert "tests hypotheses 1, 2" in login.json("status")["allocation"]
    cluster.end("1_1", "NODE_FAIL")
    # What was told of its end and had no time left.
    cluster.end("1_2", "FAILED")
    second = login.elements.notes()[1]
    login.elements.put(replace(second, left="job 1002 is near its end"))
    wait_for(lambda: not any(map(login.elements.worked_on, login.elements.notes())), 60)
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    assert not login.elements.notes()
    # What was cut off is a run of the campaign that is void, and says by what.
    runs = [store.Workspace(login.campaign.folder).run(name) for name in login.campaign.runs()]
    assert [run.name for run in runs] == ["0101-baseline-workload", "0201-baseline-workload"]
    assert all(run.sealed for run in runs)
    records = [dict(run.read("run.json")) for run in runs]
    assert {(r["role"], r["outcome"]) for r in records} == {("baseline-workload", "INTERRUPTED")}
    assert [r["reason"] for r in records] == [
        "by the cluster: Slurm ended job 1_1: NODE_FAIL",
        "by the cluster: Slurm ended job 1_2: job 1002 is near its end",
    ]
    assert login.json("verify")["problems"] == []


def test_runs_may_be_a_link_to_another_disk(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2)
    runs = login.campaign.folder / "runs"
    with (login.campaign.folder / ".git" / "info" / "exclude").open("a") as exclude:
        exclude.write("/runs\n")
    runs.rename(tmp_path / "scratch")
    runs.symlink_to(tmp_path / "scratch")
    login.json("submit")
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED"]
    assert login.json("verify")["problems"] == []


def test_what_is_released_while_it_is_tested_counts_for_nothing(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=4.0)
    login.json("submit")
    note = login.elements.notes()[0]
    wait_for(lambda: any(login.elements.path(note).glob("*-h1/train.log")), 60)
    login.json("release", "1")
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED", "REJECTED"]
    assert login.json("verify")["problems"] == []
    assert login.json("status")["budget"]["hypotheses_used"] == 1


def test_elements_that_came_with_the_repository_are_not_taken_in(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=1)
    (note,) = login.elements.make((1,), "2026-11-26T08:00:00.000000+00:00")
    login.elements.put(replace(note, array="1", ended="done"))
    subprocess.run(["git", "add", "-f", "runs"], cwd=login.campaign.folder, check=True)
    error = login.json("wait", status=1)["error"]
    assert "git tracks runs of job arrays" in error["message"]


@pytest.mark.parametrize("cut", ["moved", "recorded"])
def test_what_is_cut_off_while_it_is_taken_in_is_taken_in_once(
    tmp_path: Path, cluster: Batch, cut: str
) -> None:
    login = Login(tmp_path, cluster, count=2)
    login.json("submit")
    # While the campaign is busy the elements leave what they measured to its next command.
    with _claimed_once_free(login):
        wait_for(lambda: all(n.ended for n in login.elements.notes()), 90)
        (first, *_) = notes = login.elements.notes()
        assert len(notes) == 2
        kept = tmp_path / "kept"
        shutil.copytree(login.elements.path(first), kept, symlinks=True)
        if cut == "moved":
            login.elements.take_in(first)
        else:
            take_in(load(login.campaign.folder), first, "x")
            for run in kept.glob("0*"):
                shutil.rmtree(run)
            shutil.copytree(kept, login.elements.path(first))
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED"]
    assert login.campaign.text.count("Result") == 2
    assert login.json("verify")["problems"] == []


def _claimed_once_free(login: Login) -> Any:
    deadline = time.monotonic() + 30
    while True:
        try:
            return store.Workspace(login.campaign.folder).claim({"command": "x"})
        except BusyError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_an_element_that_was_never_submitted_gives_its_hypothesis_back(
    tmp_path: Path, cluster: Batch
) -> None:
    login = Login(tmp_path, cluster, count=1)
    (note,) = login.elements.make((1,), "2026-11-26T08:00:00.000000+00:00")
    login.campaign.progress.write_text(
        login.campaign.text.replace("UNTESTED", f"TESTING ({claim_in(note).note})")
    )
    assert login.campaign.statuses() == ["TESTING"]
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED"]
