"""The files of a campaign's allocation: one request at a time, and no note of another shape."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gpudebug.core.errors import BusyError
from gpudebug.edges import store

NOTE = store.AllocationNote(job="12", since="2026-11-26T06:00:00+00:00", session="a", waits="Priority")
REQUEST = store.RunRequest(id="1", since="2026-11-26T06:00:01+00:00", verb="next", session="a")


@pytest.fixture
def files(tmp_path: Path) -> store.Allocations:
    return store.Allocations(tmp_path / "runs")


def test_before_the_first_there_is_nothing(files: store.Allocations) -> None:
    assert (files.note(), files.request(), files.asked_to_end()) == (None, None, False)
    assert not files.served().held
    assert not files.folder.exists()


def test_what_was_noted_is_read_again(files: store.Allocations) -> None:
    with files.changing():
        files.begin(NOTE)
        files.ask(REQUEST)
    assert (files.note(), files.request()) == (NOTE, REQUEST)
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700


def test_a_second_caller_is_refused_until_the_first_is_begun(files: store.Allocations) -> None:
    with files.changing():
        files.begin(NOTE)
        files.ask(REQUEST)
        with pytest.raises(BusyError, match="session a"):
            files.ask(replace(REQUEST, id="2", session="b"))
    assert not files.forget_request("2")
    assert files.request() == REQUEST
    assert files.forget_request("1")
    assert files.request() is None


def test_a_new_allocation_is_not_ended_by_the_wish_to_end_the_last(files: store.Allocations) -> None:
    files.ask_to_end()
    assert files.asked_to_end()
    files.begin(NOTE)
    assert not files.asked_to_end()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[]",
        '{"job": "12"}',
        '{"job": 12, "since": "x"}',
        '{"job": "12", "since": "x", "lost": "yes"}',
        '{"job": "12", "since": "x", "more": 1}',
        '{"job": null, "since": "x"}',
    ],
)
def test_a_note_of_another_shape_is_none(files: store.Allocations, data: str) -> None:
    files.make()
    (files.folder / "job.json").write_text(data)
    assert files.note() is None


def test_runs_of_a_request_are_a_number(files: store.Allocations) -> None:
    files.make()
    given = {"id": "1", "since": "x", "verb": "aa", "runs": 3}
    (files.folder / "request.json").write_text(json.dumps(given))
    assert files.request() == store.RunRequest(id="1", since="x", verb="aa", runs=3)
    (files.folder / "request.json").write_text(json.dumps({**given, "runs": True}))
    assert files.request() is None
