"""Hypotheses in a job array: each has a job, a baseline and runs of its own, and one result."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.arrays import Login
from tests.support.batch import Batch
from tests.support.campaigns import Done, wait_for

from gpudebug.core.campaign.decide import Campaign as Facts
from gpudebug.core.campaign.decide import HypothesisState
from gpudebug.core.config import SlurmSettings
from gpudebug.core.errors import ProgressError, StoreError
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.edges.clusters.slurm import SlurmCluster
from gpudebug.engine.campaign import claims
from gpudebug.engine.campaign.files import find, read_config
from gpudebug.engine.campaign.runner import cluster_of
from gpudebug.engine.cycle import array
from gpudebug.engine.cycle.array import end_array, ready, submit_array


def test_each_hypothesis_is_tested_in_a_job_of_its_own(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster)
    printed = login.campaign.run("submit", "--dry-run", env=login.env).expect(0).out
    assert "#SBATCH --array=1-3%2\n" in printed
    asked = login.json("submit")
    assert (asked["job"], asked["action"]) == ("1", "waiting")
    assert (tmp_path / "cluster" / "1_2.sh").read_text() == printed
    # A person has nothing else to do meanwhile, and nothing is asked for.
    assert "array 1" in login.json("next")["why"] or not login.elements.notes()
    again = login.json("submit")
    assert (again["job"], again["action"]) == ("1", "waiting") or not login.elements.notes()
    login.wait()
    assert login.campaign.statuses() == ["VALIDATED", "REJECTED", "VALIDATED"]
    runs = login.campaign.runs()
    assert {f"0{n}01-baseline-workload" for n in (1, 2, 3)} <= {*runs}
    assert {f"0{n}03-h{n}" for n in (1, 2, 3)} <= {*runs}
    assert login.json("verify")["problems"] == []
    assert not login.elements.notes()
    records = [dict(store.Workspace(login.campaign.folder).run(name).read("run.json")) for name in runs]
    assert {r["node"]["allocation"] for r in records} >= {"1_1", "1_2", "1_3"}
    assert cluster.calls("sbatch") <= 2


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


def test_a_crash_that_nobody_answered_is_not_submitted_again(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=0)
    for number in (1, 2):
        login.crashes(number)
        login.propose_patch(number, "import argparse")
    login.json("submit")
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    crashed = login.campaign.runs()
    for number in (3, 4):
        login.propose_patch(number, "import argparse")
    cluster.hold("Resources")

    def asked(*words: str) -> Done:
        return login.campaign.run("submit", *words, env=login.env).expect(0)

    printed = asked("--dry-run")
    assert "hypothesis 1 is left out: its code crashed in run 0103-h1 (exception)" in printed.err
    assert "mend hypotheses/patches/2.patch, or gpudebug next" in printed.err
    assert "#SBATCH --array=3-4%2\n" in printed.out
    # What was mended is tested, and a second crash of it would be its verdict.
    mended = login.campaign.folder / "hypotheses" / "patches" / "1.patch"
    mended.write_text(mended.read_text().replace("A1 = 1", "A1 = 2"))
    done = asked()
    assert "hypothesis 2 is left out" in done.err
    assert "hypothesis 1 is left out" not in done.err
    assert [note.hypothesis for note in login.elements.notes()] == [1, 3, 4]
    login.json("stop")
    assert login.campaign.statuses() == ["UNTESTED"] * 4
    assert login.campaign.runs() == crashed


def test_stop_ends_the_array_and_keeps_what_was_measured(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2, seconds=20.0)
    login.json("submit")
    wait_for(lambda: all(any(login.elements.path(n).glob("*-baseline-*")) for n in login.elements.notes()))
    assert login.json("stop")["why"] == "array 1 was ended"
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    workspace = store.Workspace(login.campaign.folder)
    ended = [dict(workspace.run(name).read("run.json")) for name in login.campaign.runs()]
    assert {(r["outcome"], workspace.run(r["name"]).sealed) for r in ended} == {("INTERRUPTED", True)}


@pytest.mark.parametrize(
    ("free", "statuses"), [(True, ["UNTESTED"] * 2), (False, ["TESTING"] * 2)], ids=["free", "not free"]
)
def test_an_array_that_cannot_be_noted_is_taken_back(
    tmp_path: Path, cluster: Batch, monkeypatch: pytest.MonkeyPatch, free: bool, statuses: list[str]
) -> None:
    """Its elements would begin some day, and nobody would know of them."""
    login = Login(tmp_path, cluster, count=2, seconds=20.0)
    cluster.begins(0)
    monkeypatch.setenv("PATH", login.env["PATH"])
    put = store.Elements.put

    def full(elements: store.Elements, note: store.ElementNote) -> None:
        if note.array is not None and note.hypothesis == 2:
            raise StoreError("cannot write: No space left on device")
        put(elements, note)

    def refused(*_: object) -> None:
        raise ProgressError("its entry is gone")

    monkeypatch.setattr(store.Elements, "put", full)
    if not free:
        monkeypatch.setattr(claims, "free", refused)
    slurm = SlurmCluster(SlurmSettings(partition="gpu"), tmp_path / "answers")
    with pytest.raises(StoreError, match="No space left"):
        submit_array(login.campaign.folder, slurm, lambda live: None)
    assert {cluster.job(id)["word"] for id in cluster.jobs()} == {"CANCELLED"}
    assert login.campaign.statuses() == statuses
    assert not login.elements.notes()


def test_a_cluster_that_refuses_leaves_all_as_it_was(tmp_path: Path, cluster: Batch) -> None:
    login = Login(tmp_path, cluster, count=2)
    (cluster.bin / "sbatch").write_text(
        "#!/bin/sh\necho 'sbatch: error: Invalid job array specification' >&2\nexit 1\n"
    )
    error = login.json("submit", status=1)["error"]
    assert "MaxArraySize" in error["next"]
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]
    assert not login.elements.notes()


def test_what_cannot_end_in_time_is_left_to_the_next_command(
    tmp_path: Path, cluster: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.hold("Resources")
    login, said = Login(tmp_path, cluster, count=2), list[str | None]()
    login.json("submit")
    monkeypatch.setenv("PATH", login.env["PATH"])
    monkeypatch.setattr(array, "SEALS_S", 0.0)
    (first, _) = login.elements.notes()
    workspace = find(login.campaign.folder)
    config = read_config(workspace)
    with login.elements.take(first, {"pid": os.getpid()}):
        ended = end_array(workspace, cluster_of(workspace, config), lambda live: said.append(live.remark))
    assert (ended, [n.name for n in login.elements.notes()]) == (("1",), [first.name])
    assert "hypotheses 1 are still being sealed; gpudebug wait takes them in" in said
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output_dir=/scratch/me/out"], "--output_dir=/scratch/me/out at once"),
        (["--output_dir", "checkpoints/a"], "--output_dir=checkpoints/a at once"),
        (["--output_dir=/scratch/me/{run}"], None),
        (["--output_dir=out"], None),
        (["--lr=0.1"], None),
    ],
)
def test_a_place_that_all_write_to_is_told(words: list[str], said: str | None) -> None:
    found = array.shared_output(("python", "train.py", *words), ("./checkpoints", "data"))
    assert (found is None) if said is None else (found is not None and said in found)


def test_a_session_submits_no_array(tmp_path: Path, cluster: Batch) -> None:
    cluster.hold("Resources")
    login = Login(tmp_path, cluster, count=2)
    login.env["GPUDEBUG_SESSION"] = "a"
    assert "--array" not in login.campaign.run("submit", "--dry-run", env=login.env).expect(0).out
    login.json("submit")
    assert login.campaign.statuses() == ["UNTESTED", "UNTESTED"]


def test_hypotheses_beyond_the_budget_wait() -> None:
    waiting = HypothesisState(1, Status.UNTESTED, mechanical=True)
    hypotheses = (
        replace(waiting, number=1, status=Status.VALIDATED),
        replace(waiting, number=2, status=Status.TESTING),
        replace(waiting, number=3, mechanical=False),
        replace(waiting, number=4, problem=True),
        replace(waiting, number=5, share=1.0),
        replace(waiting, number=6, share=3.0),
        replace(waiting, number=7, share=2.0),
    )
    facts = Facts((), hypotheses, hypothesis_budget=4)
    assert ready(facts) == (6, 7)
    assert ready(replace(facts, hypothesis_budget=1)) == ()
