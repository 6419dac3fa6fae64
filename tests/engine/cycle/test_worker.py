"""The process behind `next --detach`: it tells its caller first, and keeps its answer where nobody hears."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import wait_for

from gpudebug.core.answers.next import NextAnswer
from gpudebug.edges import store
from gpudebug.edges.daemon import Daemon, Ear
from gpudebug.engine.cycle.worker import Announcer
from gpudebug.engine.run.live_line import Live

# A cycle that does as it is told, in the real process.
PROGRAM = """\
import time
from pathlib import Path
from gpudebug.core.errors import DeviceError
from gpudebug.engine.cycle import begin
from gpudebug.core.answers.next import NextAnswer
from gpudebug.engine.cycle import worker
from gpudebug.engine.run.live_line import Live

def pretend(directory, report, session, wish):
    what = (directory / "what").read_text()
    if what.startswith("run"):
        report(Live("0001-h1", 0.0, None, None, None, None, None, "somebody else is here"))
        report(Live("0001-h1", 0.1, None, None, None, None, None))
    if what.endswith("for ever"):
        time.sleep(60)
    if what.endswith("fails"):
        raise DeviceError("no device", file="gpudebug.yaml", next="gpudebug doctor")
    if what.endswith("defect"):
        raise ZeroDivisionError("planted")
    return NextAnswer(action="tested", campaign=session, why="planted")

def main(request, fd):
    begin.next_or_attached = pretend
    return worker.main(request, fd)
"""
DONE = {"answer": NextAnswer(action="tested", campaign="a", why="planted").as_json()}


class Background:
    def __init__(self, folder: Path, what: str) -> None:
        (folder / "what").write_text(what)
        self.files = store.Detached(folder / "runs")
        request = {
            "directory": str(folder),
            "private": str(folder / "runs"),
            "session": "a",
            "id": "7",
            "since": "2026",
        }
        self.daemon = Daemon(
            "planted_background",
            json.dumps(request),
            cwd=str(folder),
            env=os.environ,
            log=self.files.start_log("7"),
        )

    def hear(self) -> dict[str, Any] | None:
        return self.daemon.hear(30)

    def ended(self) -> bool:
        return not self.files.said().held

    def answer(self) -> dict[str, Any]:
        wait_for(lambda: self.ended() and self.files.has_answer())
        return self.files.take_answer(lambda _: True) or {}


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    (tmp_path / "planted_background.py").write_text(PROGRAM)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    started = []

    def begin(what: str) -> Background:
        started.append(Background(tmp_path, what))
        return started[-1]

    yield begin
    for one in started:
        one.daemon.leave()
        wait_for(one.ended)


def test_without_a_run_the_answer_is_told_and_not_kept(begin) -> None:  # type: ignore[no-untyped-def]
    made = begin("nothing")
    assert made.hear() == {"done": DONE}
    wait_for(made.ended)
    assert not made.files.has_answer() and not made.files.said().killed


def test_with_a_run_the_answer_is_kept(begin) -> None:  # type: ignore[no-untyped-def]
    made = begin("run")
    assert made.hear() == {"run": "0001-h1", "remarks": ["somebody else is here"]}
    kept = made.answer()
    assert kept["answer"] == DONE["answer"] and (kept["session"], kept["id"]) == ("a", "7")
    assert made.files.log("7").read_text() == "somebody else is here\n"


@pytest.mark.parametrize("what", ["nothing fails", "run fails"])
def test_an_expected_error_is_an_answer(begin, what: str) -> None:  # type: ignore[no-untyped-def]
    made = begin(what)
    said = made.hear()
    outcome = said["done"] if "done" in said else made.answer()
    assert outcome["exit_status"] == 1 and outcome["error"]["code"] == "device"
    assert (outcome["error"]["file"], outcome["error"]["next"]) == ("gpudebug.yaml", "gpudebug doctor")


def test_a_defect_is_told_and_its_traceback_is_in_the_log(begin) -> None:  # type: ignore[no-untyped-def]
    made = begin("run defect")
    assert made.hear()["run"]
    kept = made.answer()
    assert kept["exit_status"] == 3 and kept["error"]["code"] == "defect"
    assert "ZeroDivisionError: planted" in Path(kept["error"]["file"]).read_text()


def test_a_request_to_stop_ends_it_wherever_it_is(begin) -> None:  # type: ignore[no-untyped-def]
    made = begin("run for ever")
    assert made.hear()["run"]
    made.files.ask_to_stop("8")
    made.files.ask_to_stop("7")
    assert made.answer()["exit_status"] == 130
    assert not made.files.asked_to_stop("7")


def test_there_is_one_at_a_time(begin) -> None:  # type: ignore[no-untyped-def]
    made = begin("run for ever")
    assert made.hear()["run"]
    said = begin("nothing").hear()["done"]
    assert said["exit_status"] == 6 and "gpudebug next --detach" in said["error"]["message"]
    made.files.ask_to_stop("7")
    made.answer()


def test_the_caller_is_told_once_and_remarks_go_before(capsys: pytest.CaptureFixture[str]) -> None:
    hear, tell = os.pipe()
    told = Announcer(Ear(tell))
    told(Live("0001-h1", 0.0, None, None, None, None, None, "a remark"))
    assert not told.told
    for _ in range(3):
        told(Live("0001-h1", 1.0, 1, 2, None, None, None))
    os.close(tell)
    with os.fdopen(hear) as f:
        assert [json.loads(line) for line in f] == [{"run": "0001-h1", "remarks": ["a remark"]}]
    assert capsys.readouterr().err == "a remark\n"
