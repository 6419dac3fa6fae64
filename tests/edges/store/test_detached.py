"""The files of a background run: an answer handed out once, a lock that tells the killed from the done."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import store

ANSWER = {"answer": {"action": "tested"}, "session": "a", "id": "1"}


@pytest.fixture
def files(tmp_path: Path) -> store.Detached:
    made = store.Detached(tmp_path / "runs")
    made.start_log("1")
    return made


def anything(_: dict[str, Any]) -> bool:
    return True


def test_an_answer_is_handed_out_once(files: store.Detached) -> None:
    assert files.take_answer(anything) is None
    files.put_answer(ANSWER)
    assert files.take_answer(lambda kept: kept["session"] == "b") is None
    assert files.take_answer(lambda kept: kept["session"] == "a") == ANSWER
    assert files.take_answer(anything) is None


def test_of_many_who_ask_at_once_one_gets_it(files: store.Detached) -> None:
    files.put_answer(ANSWER)
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(files.take_answer(anything))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [g for g in got if g is not None] == [ANSWER]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'"text"'])
def test_what_is_no_answer_is_none(files: store.Detached, content: bytes) -> None:
    files.answer("1").write_bytes(content)
    assert files.take_answer(anything) is None
    assert files.answer_of("1") is None
    assert not files.has_answer()


def test_a_newer_answer_replaces_one_that_nobody_took(files: store.Detached) -> None:
    files.put_answer(ANSWER)
    files.put_answer({**ANSWER, "id": "2"})
    assert files.has_answer()
    assert files.take_answer(anything) == {**ANSWER, "id": "2"}
    assert files.take_answer(anything) is None
    assert not files.has_answer()


def test_the_answer_of_another_session_waits_for_it(files: store.Detached) -> None:
    files.put_answer(ANSWER)
    files.put_answer({**ANSWER, "session": "b", "id": "2"})
    for session in ("b", "a"):
        found = files.take_answer(lambda kept, session=session: kept["session"] == session)  # type: ignore[misc]
        assert found is not None and found["session"] == session
    assert not files.has_answer()


def test_who_follows_a_process_has_its_answer_whoever_took_it(files: store.Detached) -> None:
    files.put_answer(ANSWER)
    files.put_answer({**ANSWER, "id": "2"})
    assert files.take_answer(anything) is not None
    taken = files.answer_of("1")
    assert taken is not None and taken["answer"] == ANSWER["answer"]
    assert files.answer_of("1") is None


def test_old_answers_go(files: store.Detached) -> None:
    for number in range(10, 25):
        files.put_answer({**ANSWER, "id": str(number)})
    kept = sorted(path.name for path in files.folder.glob("answer*.json"))
    assert kept == [f"answer-{number}.json" for number in range(15, 25)]


def test_everything_is_closed_to_others(files: store.Detached) -> None:
    files.put_answer(ANSWER)
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in (files.folder, files.log("1"), files.answer("1"))}
    assert modes == {files.folder: 0o700, files.log("1"): 0o600, files.answer("1"): 0o600}


def test_old_logs_go(files: store.Detached) -> None:
    names = [f"20261121T1000{n:02d}-9" for n in range(15)]
    for name in names:
        files.start_log(name).write_text(name)
    assert sorted(p.stem for p in files.folder.glob("*.log")) == sorted(["1", *names])[-10:]


HOLD = """\
import sys
from pathlib import Path
from gpudebug.edges import store
with store.Detached(Path(sys.argv[1])).take({"pid": 1, "id": "7", "session": None}):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(files: store.Detached) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(files.folder.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    return process


@pytest.mark.parametrize("killed", [False, True])
def test_a_killed_holder_is_told_from_one_that_ended(files: store.Detached, killed: bool) -> None:
    assert files.said() == store.detached.HolderNote({}, False)
    process = hold(files)
    assert files.said().held and files.said().holder["id"] == "7" and not files.said().killed
    with pytest.raises(BusyError):
        files.take({})
    files.forget_killed()
    assert files.said().held
    if killed:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert files.said().killed is killed
    files.forget_killed()
    assert not files.said().killed


def test_a_request_to_stop_is_for_one_process(files: store.Detached) -> None:
    files.ask_to_stop("7")
    assert files.asked_to_stop("7") and not files.asked_to_stop("8")
    files.forget_request("7")
    assert not files.asked_to_stop("7")
    files.forget_request("7")


def test_names_sort_by_time() -> None:
    first, second = (store.new_id(f"2026-11-21T{hour}:00:00+00:00") for hour in ("09", "10"))
    assert first < second and first == f"20261121T090000-{os.getpid()}"


def test_garbage_in_a_lock_names_nobody(files: store.Detached) -> None:
    for content in ("", "[1, 2]", "{", json.dumps("x")):
        files.lock.write_text(content)
        assert store.said(files.lock) == store.detached.HolderNote({}, False)


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "detached").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        store.Detached(tmp_path / "runs").start_log("1")
    assert list((tmp_path / "elsewhere").iterdir()) == []
