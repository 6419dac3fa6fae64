"""Operations one at a time in the main thread: cancelled as by Ctrl-C, too late, or by the end."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpudebug.core.errors import BusyError, InterruptedRun
from gpudebug.mcp.worker import JobResult, Worker, WorkerJob


class Client:
    """A thread that asks for work and closes the worker when it is through; `run` is the main thread's."""

    def __init__(self, story: Callable[[Client], None]) -> None:
        self.worker = Worker()
        self.answers: list[JobResult] = []
        self._story = story
        self._failed: list[BaseException] = []

    def submit(self, work: Callable[[], dict[str, Any]]) -> WorkerJob:
        job = WorkerJob(work, self.answers.append)
        self.worker.submit(job)
        return job

    def run(self) -> list[JobResult]:
        thread = threading.Thread(target=self._talk)
        thread.start()
        try:
            self.worker.run()
        finally:
            thread.join()
        assert not self._failed
        return self.answers

    def _talk(self) -> None:
        try:
            self._story(self)
        except AssertionError as e:
            self._failed.append(e)
        finally:
            self.worker.close()


def idle(event: threading.Event, seconds: float = 30) -> dict[str, Any]:
    event.set()
    # Little by little, as everything waits here: a signal just before a sleep does not end it.
    for _ in range(int(seconds * 100)):
        time.sleep(0.01)
    return {"slept": seconds}


def test_jobs_are_done_in_their_order_in_the_main_thread() -> None:
    def story(client: Client) -> None:
        for n in range(5):
            client.submit(lambda n=n: {"n": n, "main": threading.current_thread() is threading.main_thread()})

        done = threading.Event()
        client.submit(lambda: {"last": done.set()})
        assert done.wait(10)

    answers = Client(story).run()
    assert [a.document for a in answers[:5]] == [{"n": n, "main": True} for n in range(5)]


def test_an_error_is_the_object_that_json_prints_and_a_defect_leaves_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def busy() -> dict[str, Any]:
        raise BusyError("the device is held", next="gpudebug wait")

    def defective() -> dict[str, Any]:
        return {"x": {}["y"]}

    def story(client: Client) -> None:
        done = threading.Event()
        client.submit(busy)
        client.submit(defective)
        client.submit(lambda: {"last": done.set()})
        assert done.wait(10)

    held, defect, _ = Client(story).run()
    error = {"code": "busy", "message": "the device is held", "file": None, "line": None}
    assert held == JobResult({"error": {**error, "next": "gpudebug wait"}}, failed=True)
    assert defect.document["error"]["code"] == "defect"
    assert "KeyError" in Path(defect.document["error"]["file"]).read_text()


def test_a_cancelled_job_stops_and_the_next_one_is_done() -> None:
    def story(client: Client) -> None:
        started, done = threading.Event(), threading.Event()
        job = client.submit(lambda: idle(started))
        waiting = client.submit(lambda: {"never": True})
        client.submit(lambda: {"last": done.set()})
        assert started.wait(10)
        client.worker.cancel(waiting)
        client.worker.cancel(job)
        assert done.wait(10)

    answers = Client(story).run()
    assert [a.document.get("error", {}).get("code") for a in answers] == ["interrupted", "interrupted", None]


def test_a_cancellation_at_any_moment_leaves_the_worker_at_work() -> None:
    moments = random.Random(4)

    def story(client: Client) -> None:
        for _ in range(200):
            job = client.submit(lambda: {"sum": sum(range(2000))})
            time.sleep(moments.random() * 3e-4)
            client.worker.cancel(job)
        done = threading.Event()
        client.submit(lambda: {"last": done.set()})
        assert done.wait(10)

    answers = Client(story).run()
    assert len(answers) == 201
    assert answers[-1].document == {"last": None}


def test_closing_stops_what_is_being_done() -> None:
    def story(client: Client) -> None:
        started = threading.Event()
        client.submit(lambda: idle(started))
        assert started.wait(10)

    assert [a.interrupted for a in Client(story).run()] == [True]


def test_what_does_not_heed_the_first_press_is_pressed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudebug.mcp.worker.PRESS_AGAIN_S", 0.1)

    def stubborn(started: threading.Event) -> dict[str, Any]:
        with contextlib.suppress(KeyboardInterrupt):
            idle(started)
        return idle(started)

    def story(client: Client) -> None:
        started = threading.Event()
        client.submit(lambda: stubborn(started))
        assert started.wait(10)

    assert [a.interrupted for a in Client(story).run()] == [True]


def _pressed() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGINT)
    return idle(threading.Event())


def _stopped() -> dict[str, Any]:
    raise InterruptedRun("run 0001 was interrupted")


@pytest.mark.parametrize("work", [_pressed, _stopped], ids=["Ctrl-C", "a signal to the run"])
def test_a_signal_that_nobody_here_sent_ends_the_worker(work: Callable[[], dict[str, Any]]) -> None:
    handler = signal.getsignal(signal.SIGINT)
    worker, answers = Worker(), []
    worker.submit(WorkerJob(work, answers.append))
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert [a.interrupted for a in answers] == [True]
    assert signal.getsignal(signal.SIGINT) is handler
