"""What elements of a job array measured becomes the campaign's once, whatever happens meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.arrays import Login
from tests.support.batch import Batch
from tests.support.campaigns import Campaign, copied, wait_for

from gpudebug.core.cluster.jobs import JobEnd, JobState, SeenJob
from gpudebug.core.errors import BusyError, ConfigError, StoreError
from gpudebug.edges import store
from gpudebug.engine.campaign.accepted import Acceptances
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.load import load
from gpudebug.engine.cycle import taken_in
from gpudebug.engine.cycle.taken_in import claim_in, take_in, take_in_ended


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
    (note,) = login.elements.make("test", (1,), "2026-11-26T08:00:00.000000+00:00")
    login.elements.put(replace(note, array="1", ended="done"))
    login.elements.put_progress(note, b"")
    subprocess.run(["git", "add", "-f", "runs"], cwd=login.campaign.folder, check=True)
    login.campaign.propose("--set --lr=0.9")
    for command in ("wait", "submit"):
        error = login.json(command, status=1)["error"]
        assert "git tracks runs of job arrays" in error["message"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """A campaign that was busy when both its elements ended: they left what they measured to its next
    command."""
    folder = tmp_path_factory.mktemp("measured")
    cluster = Batch(folder / "cluster")
    login = Login(folder, cluster, count=2)
    login.json("submit")
    with _claimed_once_free(login):
        # The workers themselves take them in, if they can.
        wait_for(lambda: {cluster.job(id)["word"] for id in cluster.jobs()} == {"COMPLETED"}, 90)
        assert [bool(n.ended) for n in login.elements.notes()] == [True, True]
    cluster.close()
    yield login.campaign


@pytest.fixture
def left(measured: Campaign, tmp_path: Path) -> Campaign:
    return copied(measured, tmp_path / "repo")


def _elements(campaign: Campaign) -> store.Elements:
    return store.Elements(store.Workspace(campaign.folder))


def _taken(campaign: Campaign) -> str:
    """What is said as the elements of a campaign are taken in."""
    loaded = load(campaign.folder)
    return "\n".join(
        one.line for one in take_in_ended(loaded.setup, loaded.entries.acceptances, None, lambda _: None)
    )


@pytest.mark.parametrize("cut", ["moved", "recorded"])
def test_what_is_cut_off_while_it_is_taken_in_is_taken_in_once(
    left: Campaign, tmp_path: Path, cut: str
) -> None:
    elements, kept = _elements(left), tmp_path / "kept"
    (first, _) = elements.notes()
    shutil.copytree(elements.path(first), kept, symlinks=True)
    if cut == "moved":
        elements.take_in(first)
    else:
        loaded = load(left.folder)
        take_in(loaded.setup, loaded.entries.acceptances, first, "x")
        for run in kept.glob("0*"):
            shutil.rmtree(run)
        shutil.copytree(kept, elements.path(first))
    _taken(left)
    assert left.statuses() == ["VALIDATED", "REJECTED"]
    assert left.text.count("Result") == 2
    assert left.json("verify")["problems"] == []


def test_a_verdict_that_was_changed_after_its_seal_is_not_entered(left: Campaign) -> None:
    elements = _elements(left)
    (path,) = elements.path(elements.notes()[1]).glob("*/verdict.json")
    path.write_text(path.read_text().replace("REJECTED", "VALIDATED"))
    said = _taken(left)
    assert f"hypothesis 2 is UNTESTED again: runs/{path.parent.name} is not as it was sealed" in said
    assert left.statuses() == ["VALIDATED", "UNTESTED"]


def test_a_name_that_is_taken_keeps_no_run_out(left: Campaign) -> None:
    runs = left.folder / "runs"
    (runs / "0103-h1").mkdir()
    (runs / "0103-h1" / "mine").write_text("x")
    assert "what had the name of its run is" in _taken(left)
    (aside,) = runs.glob(".0103-h1.*")
    assert (aside / "mine").read_text() == "x"
    assert left.statuses() == ["VALIDATED", "REJECTED"]
    assert left.json("verify")["problems"] == []


def test_one_that_cannot_be_taken_in_keeps_no_other_from_it(
    left: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[str | None]()

    def first_fails(
        setup: Setup, acceptances: Acceptances, note: store.ElementNote, why: str, cut_off: str
    ) -> str:
        if note.hypothesis == 1:
            raise StoreError("cannot move a run: No space left on device", file="0101-x")
        return take_in(setup, acceptances, note, why, cut_off)

    monkeypatch.setattr(taken_in, "take_in", first_fails)
    with pytest.raises(StoreError, match="0101-x"):
        again = load(left.folder)
        take_in_ended(again.setup, again.entries.acceptances, None, lambda live: said.append(live.remark))
    assert left.statuses() == ["TESTING", "REJECTED"]
    assert [line for line in said if line and "hypothesis 2 is REJECTED" in line]


def test_another_campaign_of_the_folder_takes_nothing_in(
    left: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, said = left.folder / "gpudebug.yaml", list[str | None]()
    own = config.read_text()
    config.write_text(own.replace("campaign: test", "campaign: other"))
    before = _elements(left).notes()
    assert taken_in.taken_in(left.folder, lambda live: said.append(live.remark)) == ((), [])
    assert _taken(left) == ""
    assert "array" not in str(left.json("status").get("allocation"))
    assert _elements(left).notes() == before
    # Nor does what an element does from now on count as the other's.
    for name, value in (("JOB_ID", "1001"), ("ARRAY_JOB_ID", "1"), ("ARRAY_TASK_ID", "1")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SLURMD_NODENAME", os.uname().nodename)
    with pytest.raises(ConfigError, match="names campaign other now, and hypothesis 1 is test's"):
        load(_elements(left).path(before[0]))
    monkeypatch.undo()
    config.write_text(own)
    _taken(left)
    assert left.statuses() == ["VALIDATED", "REJECTED"]


@pytest.mark.parametrize("judged", [True, False])
def test_a_verdict_by_hand_stands_and_is_told(left: Campaign, judged: bool) -> None:
    elements = _elements(left)
    (path,) = elements.path(elements.notes()[0]).glob("*/verdict.json")
    if not judged:
        path.unlink()
    left.progress.write_text(re.sub(r"\*\*Status\*\*: TESTING.*", "**Status**: REJECTED", left.text, count=1))
    said = _taken(left)
    assert "UNTESTED" not in said
    kept = f"came too late: its claim is gone, and it is REJECTED; runs/{path.parent.name} keeps it"
    assert (kept if judged else "hypothesis 1 is REJECTED, and its element has no result: ") in said
    assert left.statuses() == ["REJECTED", "REJECTED"]


@pytest.mark.parametrize(
    ("left", "why"),
    [
        ("job 9 is near its end: its time limit, or a preemption", "Slurm ended job 88_1: job 9 is near"),
        ("job 9 was ended (signal 15)", "Slurm ended job 88_1: job 9 was ended (signal 15)"),
        (None, "its worker failed: x.py: no such file; see "),
    ],
)
def test_a_worker_that_the_cluster_told_to_end_has_not_failed(
    tmp_path: Path, left: str | None, why: str
) -> None:
    elements = store.Elements(store.Workspace(tmp_path))
    (made,) = elements.make("test", (1,), "2026-11-26T08:00:00.000000+00:00")
    note = replace(made, array="88", left=left)
    elements.log(note).parent.mkdir()
    elements.log(note).write_text("x.py: no such file\n")
    # As Slurm sees a script that ends itself at its signal: FAILED 1:0.
    seen = SeenJob("88_1", JobState.ENDED, word="FAILED", end=JobEnd.FAILED, exit_status=1)
    cluster: Any = SimpleNamespace(title="Slurm")
    over = taken_in._unsaid(elements, note, seen, cluster)
    assert over is not None
    assert over.why.startswith(why)
    assert ("runner.slurm.time" in over.why) is ("near its end" in str(left))


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
    (note,) = login.elements.make("test", (1,), "2026-11-26T08:00:00.000000+00:00")
    login.campaign.progress.write_text(
        login.campaign.text.replace("UNTESTED", f"TESTING ({claim_in(note).note})")
    )
    assert login.campaign.statuses() == ["TESTING"]
    login.wait()
    assert login.campaign.statuses() == ["UNTESTED"]
