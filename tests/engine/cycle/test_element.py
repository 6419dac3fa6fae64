"""The worker in an element of a job array: which one it is, and what it leaves to others."""

from __future__ import annotations

import errno
import signal
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support.arrays import Login
from tests.support.batch import Batch
from tests.support.campaigns import wait_for

from gpudebug.core.answers.next import NothingRunning
from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.core.errors import ClusterError, InterruptedRun
from gpudebug.edges import store
from gpudebug.engine.cycle import element
from gpudebug.engine.cycle.notice import Notice

JOB = InsideJob(id="90", node="n0", nodes=("n0",), array="88", element=2)
SINCE = "2026-11-26T08:00:00.000000+00:00"


def elements(folder: Path, array: str | None, ended: str | None = None) -> store.Elements:
    found = store.Elements(store.Workspace(folder))
    for note in found.make("x", (1, 2), SINCE):
        found.put(replace(note, array=array, ended=ended))
    return found


def test_it_tests_the_hypothesis_of_its_number(tmp_path: Path) -> None:
    found = element._taken_up(elements(tmp_path, "88"), JOB)
    assert found is not None
    assert (found.name, found.hypothesis) == ("0200", 2)


@pytest.mark.parametrize(("array", "ended"), [("87", None), (None, None), ("88", "gpudebug stop")])
def test_an_element_that_nobody_wants_any_more_does_nothing(
    tmp_path: Path, array: str | None, ended: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(element, "SUBMITTED_S", 0.0)
    assert element._taken_up(elements(tmp_path, array, ended), JOB) is None


def test_one_that_was_cut_off_says_by_what_until_it_is_begun_again(tmp_path: Path) -> None:
    found = elements(tmp_path, "88")
    (_, note) = found.notes()
    element._leaves(found, note, "job 90 is near its end")
    assert found.notes()[1].left == "job 90 is near its end"
    assert element._taken_up(found, JOB) == note == found.notes()[1]
    # What was decided meanwhile stays.
    found.put(replace(note, ended="gpudebug stop"))
    element._leaves(found, note, "x")
    assert found.notes()[1].left is None


def test_one_that_begins_before_its_array_is_written_down_waits_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = elements(tmp_path, None)
    (_, mine) = found.notes()
    # What `submit` does meanwhile, on a file system whose locks end at the node.
    monkeypatch.setattr(element.time, "sleep", lambda _: found.put(replace(mine, array="88")))
    assert element._taken_up(found, JOB) == replace(mine, array="88")


def test_what_is_expected_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> NoReturn:
        raise error

    (note, _) = elements(tmp_path, "88").notes()
    monkeypatch.setattr(element, "main", fails)
    monkeypatch.setattr(element, "next_or_attached", fails)
    error: Exception = ClusterError("a", next="b")
    assert element.status("x") == "gpudebug: a; next: b"
    error = OSError(errno.ENOSPC, "No space left on device")
    assert str(element.status("x")).startswith("gpudebug: No space left on device; next: ")
    assert element._outcome(tmp_path, note, Notice(JOB)).startswith("No space left on device; ")
    error = OSError(errno.ENOENT, "a defect")
    with pytest.raises(OSError, match="a defect"):
        element.status("x")


def test_outside_of_an_array_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpudebug.yaml").write_text("campaign: x\n")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(ClusterError, match="no element of a job array"):
        element.main(str(tmp_path))


def test_what_ran_as_the_job_was_suspended_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def cycle(folder: Path, report: object, session: str | None) -> NothingRunning:
        asked.append("run")
        if len(asked) == 1:
            signal.raise_signal(signal.SIGTSTP)
        return NothingRunning(campaign="x", why="hypothesis 2 is VALIDATED")

    monkeypatch.setattr(element, "next_or_attached", cycle)
    (note, _) = elements(tmp_path, "88").notes()
    notice, said = Notice(JOB), list[str]()
    with notice.heeded(said.append):
        signal.raise_signal(signal.SIGTSTP)
        assert element._outcome(tmp_path, note, notice) == "hypothesis 2 is VALIDATED"
    assert (len(asked), said, notice.why) == (2, [], None)


def test_a_run_that_the_cluster_failed_is_made_again_and_an_interrupted_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = [InterruptedRun("srun: error: Node failure on n1"), InterruptedRun("run 0101-h1 was interrupted")]
    ends[0].void = True

    def cycle(folder: Path, report: object, session: str | None) -> NothingRunning:
        raise ends.pop(0)

    monkeypatch.setattr(element, "next_or_attached", cycle)
    monkeypatch.setattr(element, "AWAY_S", 0.01)
    (note, _) = elements(tmp_path, "88").notes()
    with pytest.raises(KeyboardInterrupt):
        element._outcome(tmp_path, note, Notice(JOB))
    assert ends == []
    assert "Node failure on n1: what ran is void, and is run again" in capsys.readouterr().err


def test_the_last_word_of_one_that_is_not_taken_in_is_why_it_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gpudebug.yaml").write_text("campaign: x\n")
    found, workspace = elements(tmp_path, "88", "hypothesis 1 has no patch"), store.Workspace(tmp_path)
    (note, _) = found.notes()
    with workspace.claim({"command": "x", "since": SINCE}):
        element._take_in(workspace, note, "y")
    assert capsys.readouterr().err.splitlines()[-1] == "hypothesis 1 has no patch"
    # Taken in by another command since it ended.
    found.remove(note)
    element._take_in(workspace, note, "y")
    assert capsys.readouterr().err == ""


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
    assert "solved" in (store.private_folder(tmp_path / "repo") / "allocation" / "worker-1_2.log").read_text()


@pytest.mark.heavy
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
