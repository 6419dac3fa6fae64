"""Locks of other hosts, on a file system whose flock ends at the host: another identity is injected."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from gpudebug.core.errors import BusyError
from gpudebug.edges import host, store
from gpudebug.edges.store.foreign import (
    FRESH_S,
    Lives,
    LockBeat,
    LockPlace,
    held_elsewhere,
    lock_place,
)

HERE = LockPlace("login", "boot-1")
THERE = LockPlace("node7", "boot-2")
SAID: dict[str, object] = {"pid": 12, "command": "gpudebug next", "since": "2026-01-01T00:00:00+00:00"}


def answers(known: bool | None) -> Lives:
    return lambda job: {"412": known}[job]


@pytest.mark.parametrize(
    ("place", "age", "lives"),
    [
        (THERE, 0.0, True),
        (THERE, FRESH_S - 5, True),
        (THERE, FRESH_S + 5, False),
        pytest.param(THERE, -FRESH_S / 2, True, id="a clock that is ahead"),
        pytest.param(THERE, -FRESH_S - 5, False, id="a time that cannot be"),
        pytest.param(HERE, 0.0, False, id="this host's flock decides"),
        pytest.param(LockPlace("container", "boot-1"), 0.0, False, id="another name of this kernel"),
        pytest.param(LockPlace("login", "boot-0"), 0.0, False, id="this host before it was started again"),
        pytest.param(LockPlace("node7", ""), 0.0, False, id="unknown boot"),
    ],
)
def test_a_fresh_lock_of_another_host_is_respected(place: LockPlace, age: float, lives: bool) -> None:
    record = {**SAID, **place.record}
    assert held_elsewhere(record, time.time() - age, HERE, None, answers(None)) is lives


@pytest.mark.parametrize(
    "record", [SAID, {"place": None}, {"place": ["a"]}, {"place": {"host": 1, "boot": "b"}}]
)
def test_a_lock_that_names_no_host_is_as_it_was_before(record: dict[str, object]) -> None:
    assert not held_elsewhere(record, time.time(), HERE, None, answers(True))


@pytest.mark.parametrize(
    ("age", "known", "lives"),
    [
        (FRESH_S * 9, True, True),
        (FRESH_S * 9, False, False),
        (FRESH_S * 9, None, False),
        (0.0, False, False),
        (0.0, None, True),
    ],
)
def test_the_cluster_is_asked_whether_the_job_of_a_lock_lives(
    age: float, known: bool | None, lives: bool
) -> None:
    record = {**SAID, **THERE.record, "allocation": "412.1"}
    assert held_elsewhere(record, time.time() - age, HERE, None, answers(known)) is lives


def test_a_job_that_was_started_again_has_left_its_node() -> None:
    record = {**SAID, **THERE.record, "allocation": "412"}
    now = time.time()
    assert not held_elsewhere(record, now, HERE, "412.1", answers(True))
    assert held_elsewhere(record, now, HERE, "412", answers(True))
    assert held_elsewhere(record, now, HERE, "413", answers(True))


def test_this_place_is_the_hosts_and_the_kernels() -> None:
    assert lock_place() == LockPlace(os.uname().nodename, host.boot_id() or "")
    assert lock_place().boot


def left(path: Path, age: float, **more: object) -> None:
    """A lock as a host whose flock is not seen here holds it."""
    path.write_text(json.dumps({**SAID, **THERE.record, **more}))
    os.utime(path, (time.time() - age,) * 2)


def test_a_claim_of_another_host_is_busy_and_told_while_it_is_fresh(tmp_path: Path) -> None:
    path = tmp_path / ".claim"
    left(path, 10)
    assert store.held_by(path) == SAID
    with pytest.raises(BusyError) as caught:
        store.RunClaim(path, {})
    assert caught.value.message == (
        "another gpudebug runs on node7: pid 12, `gpudebug next`, since 2026-01-01T00:00:00+00:00"
    )
    assert "120 s after a kill" in str(caught.value.next)
    assert not store.claimed(path)  # What was taken to look is given back.
    assert json.loads(path.read_text())["place"] == {"host": "node7", "boot": "boot-2"}


def test_a_stale_claim_of_another_host_is_taken(tmp_path: Path) -> None:
    path = tmp_path / ".claim"
    left(path, FRESH_S + 10)
    assert store.held_by(path) is None
    with store.RunClaim(path, {"pid": 1}):
        assert store.held_by(path) == {"pid": 1}
    assert path.read_bytes() == b""


def test_of_a_stale_claim_of_a_living_job_nobody_gets_hold(tmp_path: Path) -> None:
    path = tmp_path / ".claim"
    left(path, FRESH_S + 10, allocation="412")
    with pytest.raises(BusyError):
        store.RunClaim(path, {}, answers(True))
    with store.RunClaim(path, {}, answers(False)):
        assert store.held_by(path) == {}


def test_a_holder_renews_its_lock_until_it_stops(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.utime(fd, (0, 0))
    beat = LockBeat(fd, every=0.01)
    deadline = time.monotonic() + 30
    while path.stat().st_mtime == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    beat.stop()
    os.utime(fd, (0, 0))
    time.sleep(0.05)
    assert path.stat().st_mtime == 0
    os.close(fd)


@pytest.mark.parametrize(
    ("note", "known"),
    [
        ({}, None),
        ({"job": 412}, None),
        ({"job": "412"}, None),
        ({"job": "412", "ended": "gpudebug stop"}, False),
        ({"job": "412", "left": "near its end"}, False),
        pytest.param({"job": "413"}, False, id="another allocation"),
    ],
)
def test_what_the_campaigns_own_files_say_of_a_job(
    tmp_path: Path, note: dict[str, object], known: bool | None
) -> None:
    store.Allocations(tmp_path).make()
    store.put_json(tmp_path / "allocation" / "job.json", note)
    assert store.noted_jobs(tmp_path)("412") is known


def test_a_holder_whose_job_is_over_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".claim"
    left(path, 0.0, allocation="412")
    assert store.held_by(path) is not None
    assert store.held_by(path, answers(False)) is None


def test_a_note_that_nests_without_end_is_none(tmp_path: Path) -> None:
    store.Allocations(tmp_path).make()
    (tmp_path / "allocation" / "job.json").write_text("[" * 200_000)
    assert store.Allocations(tmp_path).note() is None
    assert store.noted_jobs(tmp_path)("412") is None
