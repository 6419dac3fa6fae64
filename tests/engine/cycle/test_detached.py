"""Long runs under short tool limits: in the background, attached to, waited for, handed out once."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.campaigns import (
    RECORDED_S,
    Campaign,
    environment,
    make_replay_campaign,
    record,
    wait_for,
)

from gpudebug.core.errors import BusyError
from gpudebug.edges import store
from gpudebug.edges.store.locks import open_lock
from gpudebug.engine.cycle import detached
from gpudebug.engine.live.underway import underway
from gpudebug.engine.run.live_line import Live
from gpudebug.engine.status.status import status as status_of

A, B = {"GPUDEBUG_SESSION": "a"}, {"GPUDEBUG_SESSION": "b"}
BASELINE = ["0001-baseline-workload", "0002-baseline-workload"]


def silent(_: Live) -> None:
    pass


class Story:
    """A campaign whose runs take `seconds`, driven from this process as from the command line."""

    def __init__(self, folder: Path, seconds: float) -> None:
        recordings = folder / "recordings"
        record(recordings, "0001-baseline-workload", util=20, rate=10)
        record(recordings, "0002-h1", util=60, rate=30)
        self.campaign = make_replay_campaign(folder / "repo", recordings, RECORDED_S / seconds).pin()
        self.files = store.Detached(self.campaign.private)

    def start(self, session: str | None = None) -> dict[str, Any]:
        return detached.start(self.campaign.folder, silent, session).as_json()

    def wait(self, session: str | None = None, limit: float | None = 60) -> dict[str, Any]:
        return detached.wait(self.campaign.folder, silent, session, limit).as_json()

    def runs(self) -> list[str]:
        return [name for name in self.campaign.runs() if name[:4].isdigit()]

    def pid(self) -> int:
        return int(self.files.said().holder["pid"])


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The background process gets this process's variables: those of the tests' other commands."""
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)


@pytest.fixture
def short(tmp_path: Path) -> Iterator[Story]:
    yield from _story(tmp_path, 2.0)


@pytest.fixture
def long(tmp_path: Path) -> Iterator[Story]:
    yield from _story(tmp_path, 30.0)


def _story(folder: Path, seconds: float) -> Iterator[Story]:
    story = Story(folder, seconds)
    yield story
    detached.stop(story.campaign.folder)


def test_the_commands_of_an_agent_whose_tools_give_up(short: Story) -> None:
    said = short.campaign.json("next", "--detach", env=A)
    assert (said["action"], said["run"], said["role"]) == (
        "running",
        "0001-baseline-workload",
        "baseline-workload",
    )
    assert said["session"] == "a" and said["next_command"] == "gpudebug wait --for 9m"
    assert short.campaign.json("wait", "--for", "1m", env=A)["action"] == "recorded_baseline"
    assert short.campaign.json("wait", env=A)["action"] == "idle"
    assert short.runs() == BASELINE


def test_a_session_that_had_its_verdict_is_told_it_again(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next", env=A)
    waited = recorded.json("wait", env=A)
    assert (waited["action"], waited["verdict"]) == ("idle", "VALIDATED") and "hypothesis 1" in waited["why"]
    assert recorded.json("next", "--detach", status=7, env=A)["verdict"] == "VALIDATED"


def test_next_and_status_tell_how_far_it_is(long: Story) -> None:
    campaign = long.campaign
    assert long.start()["action"] == "running"
    wait_for(lambda: (long.start()["step"] or 0) > 2)
    status = status_of(campaign.folder)
    assert status.running and status.progress.run == "0001-baseline-workload"
    assert status.progress.steps == 400 and status.progress.gpu_util == pytest.approx(20, abs=2)
    assert "Progress 0001-baseline-workload, step" in campaign.run("status").out
    waited = campaign.run("wait", "--for", "100ms", "--json").expect(0)
    assert waited.json["action"] == "running" and waited.json["left_s"] > 0
    assert "0001-baseline-workload" in waited.err
    assert campaign.run("next", "--detach", "--json", env=B).expect(6).json["error"]["code"] == "busy"
    assert long.runs() == ["0001-baseline-workload"]


def test_with_nothing_to_run_it_answers_as_next_does(recorded: Campaign) -> None:
    asked, plain = (recorded.run("next", *more, "--json") for more in (("--detach",), ()))
    assert asked.expect(5).json == plain.expect(5).json
    recorded.config.write_text(re.sub("device:.*", "device: replay:nowhere", recorded.config.read_text()))
    recorded.pin()
    recorded.add("\n### Hypothesis 1: Waiting\n- **Intervention**: --set --lr=0.9\n- **Status**: UNTESTED\n")
    error = recorded.run("next", "--detach", "--json").expect(1).json["error"]
    assert (error["code"], error["file"]) == ("device", str(recorded.folder / "nowhere"))
    assert not store.Detached(recorded.private).has_answer()


def test_an_error_of_the_run_is_handed_out_once(recorded: Campaign) -> None:
    files = store.Detached(recorded.private)
    files.start_log("7")
    error = BusyError("the device is taken", file="x", next="wait").as_json()
    files.put_answer({"error": error, "exit_status": 6, "session": None, "id": "7"})
    assert recorded.run("next", "--detach", "--json").expect(6).json == {"error": error}
    assert not files.has_answer()


@pytest.mark.parametrize("answer", [{"action": "tested", "campaign": "test"}, {"action": "new"}, None])
def test_an_answer_of_another_version_is_a_line_and_no_defect(recorded: Campaign, answer: object) -> None:
    files = store.Detached(recorded.private)
    files.start_log("7")
    files.put_answer({"answer": answer, "session": None, "id": "7"})
    error = recorded.run("wait", "--json").expect(1).json["error"]
    assert error["message"] == "the detached run's answer is not what this version of gpudebug writes"
    assert recorded.json("wait")["action"] == "idle"


def test_it_survives_its_caller_and_answers_its_session_or_a_person(short: Story) -> None:
    caller = short.campaign.start("next", "--detach", env=A)
    wait_for(lambda: short.files.said().held)
    os.killpg(caller.pid, signal.SIGKILL)
    caller.communicate()
    assert short.wait("b")["action"] == "idle"
    assert detached.adopt(short.campaign.folder, "b") is None
    taken = detached.adopt(short.campaign.folder, None)
    assert taken is not None and taken.action == "recorded_baseline"
    assert detached.adopt(short.campaign.folder, "a") is None


def test_what_kills_it_is_said_and_recovered(long: Story) -> None:
    long.start("a")
    os.kill(long.pid(), signal.SIGKILL)
    said = long.campaign.run("wait", "--json", env=A).expect(1).json["error"]
    assert said["code"] == "killed" and "gpudebug next" in said["next"]
    assert long.campaign.json("next", env=A)["action"] == "recovered"
    assert long.wait("a")["action"] == "idle"


def test_it_is_said_too_where_its_warden_was_still_ending_what_it_left(recorded: Campaign) -> None:
    files = store.Detached(recorded.private)
    files.start_log("7")
    files.lock.write_text(json.dumps({"pid": 7, "id": "7", "since": "2026-11-24T03:00:00"}))
    claim = open_lock(store.Workspace(recorded.folder).claim_path)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX)
        left = recorded.json("wait", "--for", "100ms")
        assert left["action"] == "running" and left["why"].endswith("still: what began it is gone")
        waiting = recorded.start("wait", "--json")
        time.sleep(1)
    finally:
        os.close(claim)
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 1 and json.loads(out)["error"]["code"] == "killed"


@pytest.mark.slow
def test_a_killed_warden_costs_its_run_only(short: Story) -> None:
    short.start()
    warden = next(
        p for p in psutil.Process(short.pid()).children() if any("warden" in w for w in p.cmdline())
    )
    warden.kill()
    assert short.wait()["action"] == "recorded_baseline"
    assert short.runs() == [*BASELINE, "0003-baseline-workload"]


def test_of_two_at_once_one_runs_and_the_other_attaches(long: Story) -> None:
    callers = [long.campaign.start("next", "--detach", "--json", env=A) for _ in range(2)]
    said = [c.communicate(timeout=60) for c in callers]
    assert [c.returncode for c in callers] == [0, 0], said
    assert long.runs() == ["0001-baseline-workload"]
    assert {json.loads(out)["action"] for out, _ in said} == {"running"}


def test_a_retry_in_the_foreground_attaches(short: Story) -> None:
    first = short.campaign.start("next", "--json", env=A)
    wait_for(
        lambda: short.runs() and (found := underway(store.Workspace(short.campaign.folder))) and found.since
    )
    assert short.start("a")["detached"] is False
    retry = short.campaign.run("next", "--json", env=A).expect(0)
    answer = first.communicate(timeout=60)[0]
    assert b"recorded_baseline" in answer and retry.json["action"] == "recorded_baseline"
    assert short.runs() == BASELINE


def test_a_run_that_is_stopped_leaves_nothing(long: Story) -> None:
    folder = long.campaign.folder
    assert detached.stop(folder) is False
    long.start("a")
    with pytest.raises(BusyError):
        detached.stop(folder, "b")
    with pytest.raises(BusyError):
        detached.stop(folder, "a", patience=0)
    began = time.monotonic()
    detached.stop(folder)
    assert time.monotonic() - began < 20
    assert long.wait("a")["action"] == "idle"
    assert underway(store.Workspace(folder)) is None


def test_one_that_takes_long_to_begin_is_under_way(long: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "TOLD_WITHIN_S", 0.0)
    said = long.start("a")
    assert (said["action"], said["run"], said["detached"]) == ("running", None, True)
    wait_for(lambda: long.files.said().held)
