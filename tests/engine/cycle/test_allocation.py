"""A campaign from a login node: one allocation, found by its files, whose end judges nothing."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.campaigns import wait_for
from tests.support.login_node import LoginNode, login_node

from gpudebug.core.cluster.jobs import ASK_S, Cluster, JobEnd, JobState, SeenJob
from gpudebug.core.errors import ClusterError, StoreError
from gpudebug.edges import host, store
from gpudebug.engine.cycle import allocation
from gpudebug.engine.cycle.allocation import Allocation
from gpudebug.engine.cycle.retold import AllocationLost
from gpudebug.engine.run.live_line import Live

A, B = {"GPUDEBUG_SESSION": "a"}, {"GPUDEBUG_SESSION": "b"}


JUST_NOW = "just now"
NOTE = store.AllocationNote(job="12", since="2026-11-26T06:00:00+00:00")
UNSEEN = "node n1 could not write LOG: it does not see the folder, or may not write there"
LEFT = replace(NOTE, left="near its end", left_at="2026-11-26T06:00:00+00:00")


@pytest.mark.parametrize(
    ("note", "seen", "after"),
    [
        (NOTE, SeenJob("12", JobState.WAITING, reason="Priority"), replace(NOTE, waits="Priority")),
        (replace(NOTE, waits="Priority"), SeenJob("12", JobState.RUNNING), NOTE),
        (replace(NOTE, waits="Priority"), SeenJob("12", JobState.UNKNOWN), replace(NOTE, waits="Priority")),
        (
            NOTE,
            SeenJob("12", JobState.ENDED, "NODE_FAIL", end=JobEnd.NODE_FAIL),
            replace(NOTE, ended="Slurm ended job 12: NODE_FAIL", lost=True),
        ),
        (NOTE, SeenJob("12", JobState.PAUSED, reason="SUSPENDED"), replace(NOTE, waits="SUSPENDED")),
        (
            LEFT,
            SeenJob("12", JobState.ENDED, "CANCELLED", end=JobEnd.CANCELLED, by=os.getuid()),
            replace(LEFT, ended="you cancelled job 12", lost=True, wanted=True),
        ),
        (
            NOTE,
            SeenJob("12", JobState.ENDED, "CANCELLED", end=JobEnd.CANCELLED, by=os.getuid() + 1),
            replace(NOTE, ended="Slurm ended job 12: CANCELLED", lost=True),
        ),
        # A folder that the node does not see is no reason to ask for another allocation.
        (
            NOTE,
            SeenJob("12", JobState.ENDED, "FAILED", nodes=("n1",), end=JobEnd.OTHER, unlogged=True),
            replace(NOTE, ended=f"job 12 never began: {UNSEEN}", failed=True),
        ),
        # Of a job that ended by itself the worker knows why; else the cluster does.
        (
            LEFT,
            SeenJob("12", JobState.ENDED, "FAILED", end=JobEnd.FAILED),
            replace(LEFT, ended="near its end", lost=True),
        ),
        (
            LEFT,
            SeenJob("12", JobState.ENDED, "TIMEOUT", end=JobEnd.TIMEOUT),
            replace(LEFT, ended="Slurm ended job 12: TIMEOUT", lost=True),
        ),
        (LEFT, SeenJob("12", JobState.WAITING, reason="BeginTime"), replace(NOTE, waits="BeginTime")),
        # Its nodes are cleaned up: whether it ended or waits again is said later.
        (NOTE, SeenJob("12", JobState.CLEANING, "COMPLETING"), replace(NOTE, waits="COMPLETING")),
        (LEFT, SeenJob("12", JobState.CLEANING, "COMPLETING"), replace(LEFT, waits="COMPLETING")),
        # An answer of before the worker ended says nothing of after.
        (
            replace(LEFT, left_at=JUST_NOW),
            SeenJob("12", JobState.WAITING, reason="Priority"),
            replace(LEFT, left_at=JUST_NOW),
        ),
    ],
)
def test_what_the_cluster_says_is_noted(
    tmp_path: Path, note: store.AllocationNote, seen: SeenJob, after: store.AllocationNote
) -> None:
    if note.left_at == JUST_NOW:
        # Of the moment of the test, not of its collection.
        at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        note, after = replace(note, left_at=at), replace(after, left_at=at)

    class Said:
        title = "Slurm"

        def states(self, ids: tuple[str, ...]) -> tuple[SeenJob, ...]:
            assert ids == ("12",)
            return (seen,)

    here = Allocation(store.Workspace(tmp_path), cast(Cluster, Said()), lambda live: None)
    here.files.make()
    here.files.put_note(note)
    if after.ended is not None:
        after = replace(after, ended=after.ended.replace("LOG", str(here.files.folder / "worker-12.log")))
    here.files.ask(store.RunRequest("1", "2026-11-26T06:00:00+00:00", "next"))
    assert here.look() == after == here.files.note()
    assert (here.files.request() is None) == (after.ended is not None)


@pytest.mark.parametrize(("job", "waits"), [("12", None), ("12.1", None), ("11", "")])
def test_the_workers_lock_says_that_its_job_began(tmp_path: Path, job: str, waits: str | None) -> None:
    """The cluster was not asked since the job was submitted, and is not for a while."""
    cluster = SimpleNamespace(title="Slurm", states=lambda ids: (SeenJob("12", JobState.UNKNOWN),))
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: None)
    here.files.make()
    here.files.put_note(replace(NOTE, waits=""))
    assert here.look() == replace(NOTE, waits="")
    with here.files.take({"pid": os.getpid(), "command": "worker", "since": NOTE.since, "allocation": job}):
        assert here.look() == replace(NOTE, waits=waits)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[LoginNode]:
    with login_node(tmp_path, 1.5) as node:
        yield node


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[LoginNode]:
    with login_node(tmp_path, 30.0) as node:
        yield node


@pytest.mark.slow
def test_one_allocation_from_the_baseline_to_the_verdict(quick: LoginNode) -> None:
    first = quick.json("next")
    assert (first["action"], first["role"]) == ("recorded_baseline", "workload")
    quick.campaign.propose("--set --lr=0.2")
    tested = quick.json("next")
    assert (tested["action"], tested["verdict"]) == ("tested", "VALIDATED")
    assert quick.cluster.jobs() == ["1"]
    assert {record["session"] for record in quick.records()} == {None}
    assert quick.json("stop")["job"] == "1"
    assert quick.json("status")["allocation"] == "job 1 is over: gpudebug stop"
    assert quick.cluster.job("1")["word"] != "RUNNING"
    assert quick.json("stop")["job"] is None


def test_what_waits_in_the_queue_says_why_and_is_answered_later(quick: LoginNode) -> None:
    quick.cluster.hold("Priority")
    asked = quick.json("next", "--detach", **A)
    assert (asked["action"], asked["run"], asked["session"]) == ("running", None, "a")
    assert "waits for job 1 to begin" in asked["why"]
    assert quick.json("status")["allocation"].startswith("job 1 waits since")
    again = quick.json("next", "--detach", **A)
    assert again["since"] == asked["since"] and quick.cluster.jobs() == ["1"]
    assert quick.json("next", status=6, **B)["error"]["code"] == "busy"
    quick.cluster.hold(None)
    waited = quick.json("wait", **A)
    assert (waited["action"], waited["role"]) == ("recorded_baseline", "workload")
    assert {record["session"] for record in quick.records()} == {"a"}
    assert quick.json("wait", **A)["action"] == "idle"


def test_a_request_that_waits_is_taken_back(quick: LoginNode) -> None:
    quick.cluster.hold("Priority")
    quick.json("next", "--detach")
    assert quick.json("wait", "--stop")["action"] == "idle"
    assert quick.files.request() is None
    waiting = quick.start("next")
    wait_for(lambda: quick.files.request() is not None)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == 130
    assert quick.files.request() is None and quick.cluster.jobs() == ["1"]
    assert quick.json("stop")["job"] == "1"
    assert quick.cluster.job("1")["word"] == "CANCELLED"


def test_a_job_that_can_never_start_is_refused_with_what_to_change(quick: LoginNode) -> None:
    quick.cluster.hold("PartitionTimeLimit")
    error = quick.told("next", status=1)["error"]
    assert "PartitionTimeLimit" in error["message"] and "runner.slurm.time" in error["next"]
    assert quick.cluster.job("1")["word"] == "CANCELLED" and quick.files.request() is None


def test_a_job_that_can_never_start_ends_the_waiting_for_it(quick: LoginNode) -> None:
    quick.cluster.hold("PartitionTimeLimit")
    quick.json("next", "--detach", status=0)
    quick.end_pause()
    error = quick.json("wait", status=1)["error"]
    assert "PartitionTimeLimit" in error["message"] and "runner.slurm.time" in error["next"]
    assert quick.cluster.job("1")["word"] == "CANCELLED"


def test_what_its_user_ended_is_not_asked_for_again(quick: LoginNode) -> None:
    quick.cluster.hold("Priority")
    waiting = quick.start("next")
    wait_for(lambda: quick.files.request() is not None)
    assert quick.json("stop")["job"] == "1"
    assert waiting.wait(60) == 130
    assert quick.cluster.jobs() == ["1"]


@pytest.mark.slow
def test_what_the_cluster_ends_is_void_and_run_again(slow: LoginNode) -> None:
    slow.json("submit")
    under_way = slow.start("next")
    wait_for(slow.under_way)
    os.kill(int(slow.cluster.job("1")["pid"]), signal.SIGTERM)
    wait_for(lambda: slow.under_way(2), 60)
    under_way.send_signal(signal.SIGINT)
    assert under_way.wait(60) == 130
    first, second = slow.records()
    assert (first["outcome"], first["reason"]) == (
        "INTERRUPTED",
        "interrupted by the cluster: it ended job 1",
    )
    assert (first["node"]["allocation"], first["node"]["attempt"]) == ("1", 1)
    assert (second["node"]["allocation"], second["node"]["attempt"]) == ("2", 2)
    assert second["reason"] == "interrupted from the login node"


@pytest.mark.slow
def test_what_its_user_cancels_in_the_middle_is_void_and_no_other_is_asked_for(slow: LoginNode) -> None:
    slow.cluster.accounts(os.getuid())
    under_way = slow.start("next")
    wait_for(slow.under_way)
    subprocess.run([slow.cluster.bin / "scancel", "1"], check=True)
    out, _ = under_way.communicate(timeout=90)
    assert under_way.returncode == 130
    assert json.loads(out)["error"]["message"] == "job 1 is over: you cancelled job 1"
    assert slow.cluster.jobs() == ["1"]
    assert [run["outcome"] for run in slow.records()] == ["INTERRUPTED"]


@pytest.mark.slow
def test_after_a_node_failed_the_run_is_sealed_with_the_clusters_word(slow: LoginNode) -> None:
    slow.json("next", "--detach", **A)
    wait_for(slow.under_way)
    slow.cluster.end("1", "NODE_FAIL")
    wait_for(lambda: not slow.detached.said().held)
    error = slow.json("wait", status=1, **A)["error"]
    assert (error["code"], "NODE_FAIL" in error["message"]) == ("allocation", True)
    recovered = slow.json("next", **A)
    assert (recovered["action"], recovered["run"]) == ("recovered", "0001-baseline-workload")
    (run,) = slow.records()
    assert (run["outcome"], run["reason"]) == ("INTERRUPTED", "by the cluster: Slurm ended job 1: NODE_FAIL")


def test_an_allocation_is_ended_by_who_asked_for_it(quick: LoginNode) -> None:
    quick.cluster.hold("Priority")
    quick.json("next", "--detach", **A)
    error = quick.json("stop", status=6, **B)["error"]
    assert "session a" in error["message"]
    assert quick.json("stop", **A)["job"] == "1"


@pytest.mark.slow
def test_inside_an_allocation_it_runs_there(quick: LoginNode) -> None:
    node = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n0", "SLURM_JOB_NODELIST": "n0"}
    assert quick.json("next", **node)["action"] == "recorded_baseline"
    assert quick.cluster.jobs() == []
    assert quick.records()[0]["node"]["allocation"] == "7"


def test_what_looks_at_the_workload_is_not_done_on_a_login_node(quick: LoginNode) -> None:
    for words in (("sample",), ("why",), ("check",)):
        error = quick.json(*words, status=125 if words == ("sample",) else 1)["error"]
        assert error["code"] in ("elsewhere", "check"), words
    assert quick.records() == []


def test_a_worker_that_cannot_begin_is_not_tried_again(tmp_path: Path) -> None:
    with login_node(tmp_path, 1.5) as node:
        config = node.campaign.config
        config.write_text(config.read_text().replace("idle: 1m", "idle: 1m, setup: 'false'"))
        node.campaign.pin()
        answer = node.told("next", status=1)["error"]
        assert answer["code"] == "cluster"
        assert answer["message"] == "the worker of job 1 failed: node n0 failed in runner.slurm.setup"
        assert answer["file"].endswith("worker-1.log")
        assert node.cluster.calls("sbatch") == 1
        node.json("next", "--detach")
        node.end_pause()
        told = node.json("wait", status=1)["error"]
        assert told["message"] == "the worker of job 2 failed: node n0 failed in runner.slurm.setup"


class Asked:
    """A cluster that says one thing, and what was cancelled."""

    title = "Slurm"

    def __init__(self, seen: SeenJob) -> None:
        self.seen, self.cancelled = seen, list[str]()

    def states(self, ids: tuple[str, ...]) -> tuple[SeenJob, ...]:
        return (self.seen,)

    def cancel(self, ids: tuple[str, ...]) -> None:
        self.cancelled += ids


def test_the_end_of_one_job_is_not_written_over_another(tmp_path: Path) -> None:
    cluster = Asked(SeenJob("13", JobState.RUNNING))
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: None)
    here.files.make()
    other = replace(NOTE, job="13")
    here.files.put_note(other)
    here.cancel(NOTE, "gpudebug stop")
    assert (cluster.cancelled, here.files.note()) == (["12"], other)
    here.cancel(other, "gpudebug stop")
    assert here.files.note() == replace(other, ended="gpudebug stop", wanted=True)


class Settling(Asked):
    """A cluster that says one thing after another; it refuses to cancel."""

    def __init__(self, *words: SeenJob) -> None:
        super().__init__(words[0])
        self.words = list(words)

    def states(self, ids: tuple[str, ...]) -> tuple[SeenJob, ...]:
        self.seen = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        return (self.seen,)

    def cancel(self, ids: tuple[str, ...]) -> None:
        super().cancel(ids)
        raise ClusterError("Unable to contact slurm controller")


@pytest.mark.parametrize(
    ("last", "after", "cancelled"),
    [
        # However long its epilog takes, or the controller is away: the job is not ended for that.
        (
            SeenJob("12", JobState.WAITING, "PENDING", reason="BeginTime"),
            replace(NOTE, waits="BeginTime"),
            [],
        ),
        (
            SeenJob("12", JobState.ENDED, "TIMEOUT", end=JobEnd.TIMEOUT),
            replace(LEFT, ended="Slurm ended job 12: TIMEOUT", lost=True),
            [],
        ),
        # One that only goes on is ended, and not by its user.
        (SeenJob("12", JobState.RUNNING, "RUNNING"), replace(LEFT, ended="near its end", lost=True), ["12"]),
    ],
)
def test_the_clusters_word_on_a_job_that_was_left_is_waited_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: SeenJob,
    after: store.AllocationNote,
    cancelled: list[str],
) -> None:
    monkeypatch.setattr(allocation, "SEALS_S", 0.05)
    monkeypatch.setattr(allocation, "POLL_S", 0.02)
    away = SeenJob("12", JobState.UNKNOWN, reason="Unable to contact slurm controller")
    cleaned = SeenJob("12", JobState.CLEANING, "COMPLETING")
    cluster, told = Settling(*[away] * 5, *[cleaned] * 5, last), list[str | None]()
    here = Allocation(
        store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: told.append(live.remark)
    )
    here.files.make()
    here.files.put_note(LEFT)
    here.refuse_unwanted()
    assert here.files.note() == after
    assert cluster.cancelled == cancelled
    assert told[1] == "Slurm cleans up after job 12 (COMPLETING); what becomes of it is known then"
    assert len(told) == 2 + len(cancelled)


def test_a_worker_killed_in_a_job_that_is_cleaned_up_costs_no_attempt(tmp_path: Path) -> None:
    cleaned = SeenJob("12", JobState.CLEANING, "COMPLETING")
    cluster = Settling(*[cleaned] * 3, SeenJob("12", JobState.WAITING, "PENDING", reason="BeginTime"))
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: None)
    here.files.make()
    here.files.put_note(NOTE)
    request = store.RunRequest(store.new_id(JUST_NOW), NOTE.since, "next")
    with pytest.raises(AllocationLost, match="put job 12 into the queue again"):
        here.follow(request)
    assert cluster.words == [cluster.seen]


def test_a_job_that_cannot_be_noted_is_not_left_in_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Settling(SeenJob("12", JobState.WAITING))
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: None)
    monkeypatch.setattr(cluster, "submit", lambda job: "12", raising=False)
    monkeypatch.setattr(allocation, "worker_job", lambda *_: None)
    monkeypatch.setattr(allocation, "read_config", lambda _: SimpleNamespace(campaign="c"))

    def full(*_: object) -> None:
        raise StoreError("no space left", file="job.json", next="make room")

    monkeypatch.setattr(store.Allocations, "begin", full)
    with pytest.raises(StoreError, match="no space left"):
        here.begin(None)
    assert cluster.cancelled == ["12"]


def test_what_was_seen_of_one_job_says_nothing_of_another(tmp_path: Path) -> None:
    cluster = Asked(SeenJob("12", JobState.ENDED, "FAILED", end=JobEnd.FAILED))
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: None)
    here.files.make()
    here.files.put_note(replace(NOTE, job="13"))
    assert here.look() == replace(NOTE, job="13")


def test_a_cluster_that_does_not_answer_is_told_once_and_waited_for(tmp_path: Path) -> None:
    why = "squeue: Unable to contact slurm controller"
    cluster, told = Asked(SeenJob("12", JobState.UNKNOWN, reason=why)), list[Live]()
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), told.append)
    here.files.make()
    here.files.put_note(NOTE)
    for _ in range(3):
        assert here.look() == NOTE
    assert [live.remark for live in told] == [f"Slurm does not answer ({why}); job 12 is waited for"]
    cluster.seen = SeenJob("12", JobState.UNKNOWN)
    here.look()
    assert len(told) == 1


def test_each_caller_of_a_request_gets_its_answer(quick: LoginNode) -> None:
    """A second terminal that takes the answer first leaves it to the command that asked."""
    request = store.RunRequest(store.new_id(JUST_NOW), NOTE.since, "next")
    cluster = Asked(SeenJob("12", JobState.RUNNING))
    here = Allocation(store.Workspace(quick.campaign.folder), cast(Cluster, cluster), lambda live: None)
    here.files.make()
    here.files.put_note(NOTE)
    here.detached.start_log(request.id)
    here.detached.put_answer({"id": request.id, "session": None, "void": "gone", "ended": NOTE.since})
    assert "gone" in quick.json("wait", status=1)["error"]["message"]
    with pytest.raises(AllocationLost, match="gone"):
        here.follow(request)
    assert cluster.cancelled == []


@pytest.mark.slow
def test_the_cluster_is_asked_once_in_ten_seconds_whoever_waits(quick: LoginNode) -> None:
    """Three commands that wait, each looking twice a second; `status` asks nothing."""
    quick.cluster.hold("Priority")
    began = time.monotonic()
    quick.json("next", "--detach", **A)
    waiting = [quick.start("wait", "--for", "4s", **A) for _ in range(3)]
    quick.json("status")
    assert [command.wait(60) for command in waiting] == [0, 0, 0]
    asked = [quick.cluster.calls(name) for name in ("sinfo", "squeue", "sacct", "scontrol")]
    assert 1 <= sum(asked) <= 1 + (time.monotonic() - began) / ASK_S, asked
    assert quick.cluster.calls("sbatch") == 1


def test_a_worker_whose_disk_is_full_cannot_say_so_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "free_disk_mb", lambda path: 0.2)
    cluster = Asked(SeenJob("12", JobState.ENDED, "FAILED", end=JobEnd.FAILED, exit_status=1))
    here = Allocation(store.Workspace(tmp_path), cast(Cluster, cluster), lambda live: None)
    here.files.make()
    here.files.put_note(NOTE)
    failed = "the worker of job 12 failed: the disk of the campaign is full"
    assert here.look() == replace(NOTE, ended=failed, failed=True)
