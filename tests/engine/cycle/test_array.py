"""Hypotheses in a job array: each has a job, a baseline and runs of its own, and one result."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.batch import Batch
from tests.support.campaigns import Campaign, make_replay_campaign, record, wait_for

from gpudebug.core.campaign.decide import Campaign as Facts
from gpudebug.core.campaign.decide import HypothesisState
from gpudebug.core.errors import BusyError
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle.array import claim_in, ready, take_in

RUNNER = "runner: {slurm: {partition: gpu, parallel: 2}}\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Batch]:
    found = Batch(tmp_path / "cluster")
    yield found
    found.close()


class Login:
    """A campaign on a login node, whose odd hypotheses help and whose runs take `seconds`."""

    def __init__(
        self, folder: Path, cluster: Batch, *, count: int = 3, seconds: float = 0.6, target: int = 80
    ) -> None:
        recordings = folder / "recordings"
        record(recordings, "0001-baseline-workload", util=20, rate=10)
        for n in range(1, (count or 3) + 1):
            record(
                recordings,
                f"000{n + 1}-h{n}",
                util=60 if n % 2 or not count else 20,
                rate=30 if n % 2 or not count else 10,
            )
        self.env = {"PATH": f"{cluster.bin}:{os.environ['PATH']}"}
        self.campaign: Campaign = make_replay_campaign(
            folder / "repo", recordings, 12 / seconds, runs=1, config=f"{RUNNER}target: {target}\n"
        ).pin()
        for n in range(count):
            self.campaign.propose(f"--set --lr=0.{n + 2}")
        self.elements = store.Elements(store.Workspace(self.campaign.folder))

    def json(self, *words: str, status: int = 0) -> Any:
        return self.campaign.json(*words, status=status, env=self.env, timeout=180)

    def propose_patch(self, number: int, before: str) -> None:
        """A patch that helps: a line before this one."""
        folder, program = self.campaign.folder, self.campaign.folder / "train.py"
        text = program.read_text()
        program.write_text(text.replace(before, f"A{number} = {number}\n{before}", 1))
        patch = subprocess.run(["git", "diff"], cwd=folder, capture_output=True, check=True).stdout
        program.write_text(text)
        path = folder / "hypotheses" / "patches" / f"{number}.patch"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(patch)
        self.campaign.propose(f"--patch hypotheses/patches/{number}.patch")

    def wait(self) -> Any:
        return self.json("wait")


def test_each_hypothesis_is_tested_in_a_job_of_its_own(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster)
    printed = login.campaign.run("submit", "--dry-run", env=login.env).expect(0).out
    assert "#SBATCH --array=1-3%2\n" in printed
    asked = login.json("submit")
    assert (asked["job"], asked["action"]) == ("1", "waiting")
    assert (tmp_path / "cluster" / "1_2.sh").read_text() == printed
    # A person has nothing else to do meanwhile, and nothing is asked for.
    assert "array 1" in login.json("next")["why"] or not login.elements.notes()
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED", "VALIDATED"]
    runs = login.campaign.runs()
    assert {f"0{n}01-baseline-workload" for n in (1, 2, 3)} <= {*runs}
    assert {f"0{n}02-h{n}" for n in (1, 2, 3)} <= {*runs}
    assert login.json("verify")["problems"] == []
    assert not login.elements.notes()
    records = [dict(store.Workspace(login.campaign.folder).run(name).read("run.json")) for name in runs]
    assert {r["node"]["allocation"] for r in records} >= {"1_1", "1_2", "1_3"}
    assert cluster.calls("sbatch") <= 2


def test_what_the_cluster_ends_is_tested_again(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=20.0)
    login.json("submit")
    wait_for(lambda: all(any(login.elements.path(n).glob("*-baseline-*")) for n in login.elements.notes()))
    assert "tests hypotheses 1, 2" in login.json("status")["allocation"]
    cluster.end("1_1", "NODE_FAIL")
    cluster.end("1_2", "CANCELLED")
    wait_for(lambda: not any(map(login.elements.worked_on, login.elements.notes())), 60)
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    assert not login.elements.notes()
    # What was cut off is a run of the campaign that is void.
    assert [name for name in login.campaign.runs() if not name.startswith(("0101", "0201"))] == []


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


def test_what_can_never_start_is_ended_with_what_to_change(tmp_path: Path, cluster: Batch) -> None:
    cluster.hold("PartitionTimeLimit")
    login = Login(tmp_path, cluster, count=2)
    login.json("submit")
    error = login.json("wait", status=1)["error"]
    assert "can never start" in error["message"]
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]


def test_an_element_that_is_begun_again_goes_on_under_its_claim(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=4.0)
    login.json("submit")
    note = login.elements.notes()[0]
    wait_for(lambda: any(login.elements.path(note).glob("*-h1/train.log")), 60)
    cluster.requeue("1_1")
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED"]
    assert login.json("verify")["problems"] == []
    workspace = store.Workspace(login.campaign.folder)
    records = [dict(workspace.run(name).read("run.json")) for name in login.campaign.runs()]
    cut_off = [r for r in records if r["outcome"] == "INTERRUPTED"]
    assert [r["role"] for r in cut_off] == ["h1"]
    assert "by the cluster" in cut_off[0]["reason"]


def test_what_has_not_begun_when_the_campaign_is_solved_does_not_begin(
    tmp_path: Path, cluster: Batch
) -> None:
    login = Login(tmp_path, cluster, count=3, target=50)
    cluster.begins(1)
    login.json("submit")
    wait_for(lambda: login.campaign.statuses()[0] == "VALIDATED", 60)
    cluster.begins(None)
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "UNTESTED", "UNTESTED"]
    assert "solved" in (tmp_path / "repo" / "runs" / ".allocation" / "worker-1_2.log").read_text()


@pytest.mark.slow
def test_patches_are_tested_beside_each_other_on_what_was_accepted(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=0)
    for number, before in enumerate(("def main(", "import argparse", "import argparse"), 1):
        login.propose_patch(number, before)
        if number == 1:
            assert login.json("next")["action"] == "recorded_baseline"
            assert login.json("next")["verdict"] == "VALIDATED"
            login.json("accept", "1", "--terms-differ")
    login.json("submit")
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED"] * 3
    assert login.json("verify")["problems"] == []
    patches = [(login.campaign.folder / "runs" / run / "change.patch") for run in login.campaign.runs()]
    assert sum(path.exists() for path in patches) >= 3
    assert [*(login.campaign.folder / "runs" / "worktrees").glob(".*")] == []
    login.json("stop")


@pytest.mark.slow
def test_a_patch_that_is_killed_hard_goes_on_in_its_element(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=0, seconds=4.0)
    for number in (1, 2):
        login.propose_patch(number, "import argparse")
    login.json("submit")
    note = login.elements.notes()[0]
    wait_for(lambda: any(login.elements.path(note).glob("*-h1/train.log")), 60)
    cluster.requeue("1_1", 9)
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED"] * 2
    assert {name[:2] for name in login.campaign.runs()} == {"01", "02"}
    assert login.json("verify")["problems"] == []
    assert [*(login.campaign.folder / "runs" / "worktrees").glob(".*")] == []


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


def test_what_is_accepted_meanwhile_is_no_matter_of_the_others(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster)
    cluster.begins(1)
    login.json("submit")
    wait_for(lambda: login.campaign.statuses()[0] == "VALIDATED", 60)
    login.json("accept", "1", "--terms-differ")
    cluster.begins(None)
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED", "VALIDATED"]
    assert login.json("verify")["problems"] == []
    # What a verdict rests on is no leftover.
    kinds = {Path(one["path"]).name: one["kind"] for one in login.json("clean")["left"]}
    assert {kinds[name] for name in login.campaign.runs()} == {"evidence"}


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
    for note in login.elements.notes():
        (login.elements.path(note) / "accepted.json").write_text("{")
    cluster.hold(None)
    ended = login.wait()
    assert "is not what gpudebug writes" in " ".join(ended["notes"])
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]


def test_elements_that_came_with_the_repository_are_not_taken_in(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=1)
    (note,) = login.elements.make((1,), "2026-11-26T08:00:00.000000+00:00")
    login.elements.put(replace(note, array="1", ended="done"))
    subprocess.run(["git", "add", "-f", "runs"], cwd=login.campaign.folder, check=True)
    error = login.json("wait", status=1)["error"]
    assert "git tracks runs of job arrays" in error["message"]


def test_stop_ends_the_array_and_keeps_what_was_measured(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=20.0)
    login.json("submit")
    wait_for(lambda: all(any(login.elements.path(n).glob("*-baseline-*")) for n in login.elements.notes()))
    assert login.json("stop")["why"] == "array 1 was ended"
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    workspace = store.Workspace(login.campaign.folder)
    ended = [dict(workspace.run(name).read("run.json")) for name in login.campaign.runs()]
    assert {(r["outcome"], workspace.run(r["name"]).sealed) for r in ended} == {("INTERRUPTED", True)}


def test_a_cluster_that_refuses_leaves_all_as_it_was(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2)
    (cluster.bin / "sbatch").write_text(
        "#!/bin/sh\necho 'sbatch: error: Invalid job array specification' >&2\nexit 1\n"
    )
    error = login.json("submit", status=1)["error"]
    assert "MaxArraySize" in error["next"]
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    assert not login.elements.notes()


def test_a_session_submits_no_array(tmp_path: Path, cluster: Batch) -> None:
    cluster.hold("Resources")
    login = Login(tmp_path, cluster, count=2)
    login.env["GPUDEBUG_SESSION"] = "a"
    assert "--array" not in login.campaign.run("submit", "--dry-run", env=login.env).expect(0).out
    login.json("submit")
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]


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


def test_hypotheses_beyond_the_budget_wait() -> None:
    waiting = HypothesisState(1, Status.UNTESTED, mechanical=True)
    hypotheses = (
        replace(waiting, number=1, status=Status.VALIDATED),
        replace(waiting, number=2, status=Status.TESTING),
        replace(waiting, number=3, mechanical=False),
        replace(waiting, number=4, problem=True),
        replace(waiting, number=5, worth=1.0),
        replace(waiting, number=6, worth=3.0),
        replace(waiting, number=7, worth=2.0),
    )
    facts = Facts((), hypotheses, hypothesis_budget=4)
    assert ready(facts) == (6, 7)
    assert ready(replace(facts, hypothesis_budget=1)) == ()


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
