"""A campaign from the login node of a real Slurm: one allocation, and what the cluster does to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import RECORDED_S, make_replay_campaign, record, wait_for
from tests.support.endings import ENDINGS, LIMIT, MOMENTS, RUN_S, by_its_limit, runs_of, sound, trial_s
from tests.support.slurm import NODES, SlurmSystem, lacking, running

from gpudebug.edges import store

RUNNER = "runner: {slurm: {partition: main, idle: 1m}}\n"


class Login:
    """A shell on the login node, in a campaign whose runs take `seconds`, those of its trials `trial`."""

    def __init__(
        self,
        slurm: SlurmSystem,
        folder: Path,
        seconds: float,
        runner: str = RUNNER,
        trial: float | None = None,
    ) -> None:
        recordings = folder / "recordings"
        length = max(RECORDED_S, seconds)
        of_trial = length * (trial or seconds) / seconds
        record(recordings, "0001-baseline-workload", util=20, rate=10, seconds=length)
        for number in (1, 2, 3):
            record(recordings, f"000{number + 1}-h{number}", util=60, rate=30, seconds=of_trial)
        self.slurm = slurm
        self.campaign = make_replay_campaign(
            folder / "repo", recordings, length / seconds, config=runner
        ).pin()
        self.files = store.Allocations(self.campaign.private)

    def json(self, *words: str, **env: str) -> Any:
        return self.campaign.json(*words, env={**self.slurm.env, **env}, timeout=180)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return self.campaign.start(*words, "--json", env=self.slurm.env)

    def job(self) -> str:
        note = self.files.note()
        assert note is not None
        return note.job

    def records(self) -> list[dict[str, Any]]:
        return [dict(run.read("run.json")) for run in self.runs()]

    def runs(self) -> list[store.RunFolder]:
        return runs_of(self.campaign)

    def ended_in_the_middle(self, how: str, after: float) -> int:
        """`next`, in which the cluster ends the allocation so many seconds into a run; its exit status."""
        before = len(self.campaign.runs())
        command = self.start("next")
        wait_for(lambda: len(self.campaign.runs()) > before, 90)
        time.sleep(after)
        ENDINGS[how](self.slurm, self.job())
        try:
            return command.wait(150)
        finally:
            for node in NODES:
                self.slurm.node_up(node)


@pytest.mark.slow
def test_a_campaign_that_slurm_ends_and_requeues_is_validated(slurm: SlurmSystem, tmp_path: Path) -> None:
    login = Login(slurm, tmp_path, 3.0)
    assert login.json("next")["action"] == "recorded_baseline"
    login.campaign.propose("--set --lr=0.2")
    first = login.job()
    assert login.ended_in_the_middle("scancel", 0.5) == 0
    # Another allocation has its own baseline first.
    second = login.job()
    assert second != first
    assert login.ended_in_the_middle("requeue", 0.5) == 0
    assert login.job() == second
    tested = login.json("next", GPUDEBUG_SESSION="a")
    assert (tested["action"], tested["verdict"]) == ("tested", "VALIDATED")
    assert [r["session"] for r in login.records() if r["node"]["attempt"] == 3] == ["a"]
    sound(login.campaign)
    assert login.json("stop")["job"] == second
    wait_for(lambda: slurm.queue() == {})


@pytest.mark.heavy
@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("how", ENDINGS)
def test_whatever_slurm_does_at_any_moment_is_void(
    slurm: SlurmSystem, tmp_path: Path, how: str, after: float
) -> None:
    login = Login(slurm, tmp_path, RUN_S, trial=trial_s(how))
    login.json("next")
    login.campaign.propose("--set --lr=0.2")
    first = login.job()
    assert login.ended_in_the_middle(how, after) == 0
    for _ in range(4):
        if login.campaign.statuses() == ["UNTESTED"]:
            login.json("next")
    assert login.campaign.statuses() == ["VALIDATED"]
    sound(login.campaign)
    assert how != LIMIT or by_its_limit(slurm, first, login.campaign)
    login.json("stop")
    wait_for(lambda: slurm.queue() == {})


@pytest.mark.heavy
def test_a_time_limit_ends_no_campaign_and_one_that_is_too_short_is_named(
    slurm: SlurmSystem, tmp_path: Path
) -> None:
    """In a minute no test of 24 s fits behind a baseline of 24 s: notice comes 10 to 40 s before its end."""
    login = Login(slurm, tmp_path, 24.0, RUNNER.replace("idle: 1m", "idle: 5m, time: 1m"))
    login.campaign.propose("--set --lr=0.2")
    for _ in range(6):
        answer = login.campaign.run("next", "--json", env=slurm.env, timeout=240)
        if answer.status != 0:
            break
    assert "allocations in a row ended before a test did" in answer.expect(1).json["error"]["message"]
    assert "runner.slurm.time" in answer.json["error"]["next"]
    assert login.campaign.statuses() == ["UNTESTED"]
    first, config = login.job(), login.campaign.config
    config.write_text(config.read_text().replace("time: 1m", "time: 2m"))
    login.campaign.pin()
    for _ in range(6):
        if "UNTESTED" in login.campaign.statuses():
            login.json("next")
    assert login.campaign.statuses() == ["VALIDATED"]
    sound(login.campaign)
    assert slurm.state(first) != "TIMEOUT"
    login.json("stop")
    wait_for(lambda: slurm.queue() == {})


@pytest.mark.heavy
def test_a_worker_that_is_killed_ends_its_job(slurm: SlurmSystem, tmp_path: Path) -> None:
    login = Login(slurm, tmp_path, 4.0)
    login.json("next")
    os.kill(int(login.files.served().holder["pid"]), signal.SIGKILL)
    wait_for(lambda: slurm.queue() == {}, 60)
    assert not login.files.served().held


@pytest.fixture
def accounted(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmSystem]:
    if missing := lacking(accounting=True):
        pytest.skip(f"no accounting here: {', '.join(missing)} (Debian: slurmdbd, mariadb-server)")
    with running(accounting=True) as system:
        for name, value in system.env.items():
            monkeypatch.setenv(name, value)
        yield system


@pytest.mark.heavy
def test_of_a_job_that_the_controller_forgot_accounting_says_how_it_ended(
    accounted: SlurmSystem, tmp_path: Path
) -> None:
    login = Login(accounted, tmp_path, 20.0)
    assert login.json("next", "--detach")["action"] == "running"
    wait_for(lambda: len(login.runs()) == 1, 60)
    first = login.job()
    accounted.run("scancel", first)
    # Nobody asks meanwhile.
    wait_for(lambda: accounted.state(first) == "", 120)
    error = login.campaign.json("wait", status=1, env=accounted.env)["error"]
    assert error["code"] == "allocation"
    assert login.json("stop")["job"] is None
    note = login.files.note()
    assert note is not None and (note.job, note.ended) == (first, f"you cancelled job {first}")
    # Of one that is cancelled in the middle, too: no other is asked for.
    command = login.start("next")
    wait_for(lambda: len(login.runs()) == 2, 60)
    accounted.run("scancel", login.job())
    assert command.wait(90) == 130
    assert accounted.queue() == {}
    assert [run["outcome"] for run in login.records()] == ["INTERRUPTED"] * 2
    sound(login.campaign)
