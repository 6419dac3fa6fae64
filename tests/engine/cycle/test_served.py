"""The worker in an allocation: what it may be asked for, and when it ends by itself."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.core.errors import ClusterError, GpudebugError, InterruptedRun
from gpudebug.edges import store
from gpudebug.engine.cycle import served
from gpudebug.engine.cycle.notice import Notice

JOB = InsideJob(id="12", node="n0", nodes=("n0",))
NOTE = store.AllocationNote(job="12", since="2026-11-26T06:00:00+00:00", waits="")
REQUEST = store.RunRequest(id="1", since="2026-11-26T06:00:01+00:00", verb="next", session="a")


def worker(folder: Path, idle: float = 600.0) -> served._Served:
    files = store.Allocations(store.private_folder(folder))
    files.make()
    return served._Served(store.Workspace(folder), files, JOB, idle, Notice(JOB))


@pytest.mark.parametrize(
    "note", [None, replace(NOTE, job="13"), replace(NOTE, ended="Slurm ended job 12: CANCELLED")]
)
def test_it_serves_no_campaign_that_has_another_allocation(
    tmp_path: Path, note: store.AllocationNote | None
) -> None:
    made = worker(tmp_path)
    if note is not None:
        made.files.put_note(note)
    assert made.serve() == 0
    assert made.files.note() == note


def test_it_ends_when_it_is_idle_and_says_so(tmp_path: Path) -> None:
    made = worker(tmp_path, idle=0.0)
    made.files.put_note(NOTE)
    assert made.serve() == 0
    assert made.files.note() == replace(NOTE, waits=None, ended="idle for 0 min")


def test_a_request_keeps_an_idle_allocation(tmp_path: Path) -> None:
    made = worker(tmp_path, idle=0.0)
    made.files.put_note(NOTE)
    made.files.ask(REQUEST)
    assert made._over() is None
    made.files.forget_request("1")
    made.files.ask_to_end()
    assert made._over() == "gpudebug stop"


def test_of_what_the_cluster_ends_the_cluster_has_the_last_word(tmp_path: Path) -> None:
    made = worker(tmp_path)
    made.files.put_note(NOTE)
    made.notice.why = "job 12 is near its end"
    assert made.serve() == 1
    note = made.files.note()
    assert note is not None and note.left_at is not None
    assert replace(note, left_at=None) == replace(NOTE, waits=None, left="job 12 is near its end")


def test_the_request_of_a_killed_worker_is_answered_as_void(tmp_path: Path) -> None:
    detached = store.Detached(store.private_folder(tmp_path))
    detached.start_log("1")
    detached.lock.write_text('{"id": "1", "session": "a", "allocation": "12"}')
    served._disown(store.Workspace(tmp_path), replace(JOB, restarts=1))
    answer = detached.take_answer(lambda kept: kept["id"] == "1")
    assert answer is not None and answer["void"] == "job 12 was put into the queue again"
    assert not detached.said().killed


def test_a_request_that_was_taken_back_is_not_begun(tmp_path: Path) -> None:
    made = worker(tmp_path)
    detached = store.Detached(store.private_folder(tmp_path))
    detached.start_log("1")
    made._do(REQUEST)
    assert detached.take_answer(lambda kept: True) is None
    assert not detached.said().held


def test_a_campaign_that_is_busy_is_an_answer_and_no_end_of_the_worker(tmp_path: Path) -> None:
    made = worker(tmp_path)
    made.files.ask(REQUEST)
    detached = store.Detached(store.private_folder(tmp_path))
    detached.start_log("1")
    with detached.take({"pid": 1, "command": "gpudebug next --detach"}):
        made._do(REQUEST)
    answer = detached.take_answer(lambda kept: kept["id"] == "1")
    assert answer is not None and answer["error"]["code"] == "busy"
    assert made.files.request() is None and made.notice.why is None


def test_an_unknown_verb_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(GpudebugError, match="'shell'"):
        served.asked(tmp_path, replace(REQUEST, verb="shell"), lambda live: None)


def test_outside_of_an_allocation_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    (tmp_path / "gpudebug.yaml").write_text("campaign: test\n")
    with pytest.raises(ClusterError, match="no allocation"):
        served.main(str(tmp_path))


def test_that_the_worker_leaves_is_known_before_its_void_answer_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = worker(tmp_path)
    made.files.put_note(NOTE)
    made.files.ask(REQUEST)
    store.Detached(store.private_folder(tmp_path)).start_log("1")
    monkeypatch.setattr(served, "asked", cut_off)
    put, at_the_answer = store.Detached.put_answer, []

    def put_answer(files: store.Detached, answer: dict[str, object]) -> None:
        note = made.files.note()
        at_the_answer.append(note.left if note is not None else None)
        put(files, answer)

    monkeypatch.setattr(store.Detached, "put_answer", put_answer)
    made._do(REQUEST)
    assert at_the_answer == ["the cluster ended job 12"] == [made.notice.why]


def cut_off(*_: object) -> NoReturn:
    raise InterruptedRun("interrupted")


def test_a_run_that_was_suspended_is_void_and_its_worker_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def suspended(*_: object) -> NoReturn:
        signal.raise_signal(signal.SIGTSTP)
        raise AssertionError("the run went on")

    made = worker(tmp_path)
    made.files.put_note(NOTE)
    detached = store.Detached(store.private_folder(tmp_path))
    detached.start_log("1")
    monkeypatch.setattr(served, "asked", suspended)
    with made.notice.heeded(made._leaves):
        signal.raise_signal(signal.SIGTSTP)
        made.files.ask(REQUEST)
        made._do(REQUEST)
    answer = detached.answer_of("1")
    assert answer is not None and answer["void"] == "the cluster suspended job 12"
    assert (made.notice.why, made.files.note()) == (None, NOTE)


@pytest.mark.parametrize(("before", "void"), [(1, True), (2, True), (3, False)])
def test_what_fits_into_no_allocation_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, void: bool
) -> None:
    def near_its_end(*_: object) -> NoReturn:
        signal.raise_signal(signal.SIGUSR1)
        raise AssertionError("the run went on")

    made = worker(tmp_path)
    made.files.put_note(NOTE)
    made.files.ask(REQUEST)
    detached = store.Detached(store.private_folder(tmp_path))
    detached.start_log("1")
    monkeypatch.setattr(served, "asked", near_its_end)
    monkeypatch.setattr(served, "wasted", lambda workspace: before)
    with made.notice.heeded(made._leaves):
        made._do(REQUEST)
    answer, note = detached.answer_of("1"), made.files.note()
    assert answer is not None and note is not None and note.left == made.notice.why
    assert ("void" in answer) is void
    assert void or "runner.slurm.time" in answer["error"]["next"]
