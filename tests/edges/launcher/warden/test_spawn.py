from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import fork

from gpudebug.edges.launcher.warden import spawn
from gpudebug.edges.launcher.warden.spawn import JobLog, open_log


def spawned(tmp_path: Path, **changes: Any) -> tuple[bytes, int]:
    """What the descriptor said, and the exit status."""
    spec = {"path": "/bin/sh", "argv": ["sh", "-c", "exit 7"], "env": {}, "cwd": "/", **changes}
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    pid, told = spawn.spawn_job(spec, log, None)
    said = b""
    while data := os.read(told, 4096):
        said += data
    os.close(told)
    os.close(log)
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_end_of_file_says_that_the_program_runs(tmp_path: Path) -> None:
    assert spawned(tmp_path) == (b"", 7)


def program(tmp_path: Path, text: bytes, mode: int = 0o755) -> str:
    path = tmp_path / "program"
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("text", "mode", "status", "words"),
    [
        (None, 0, 127, "train: not found"),
        (b"#!/no/such/python\n", 0o755, 127, "interpreter"),
        (b"#!/bin/sh\n", 0o644, 126, "train: Permission denied"),
    ],
)
def test_why_nothing_runs(tmp_path: Path, text: bytes | None, mode: int, status: int, words: str) -> None:
    path = str(tmp_path / "absent") if text is None else program(tmp_path, text, mode)
    said, code = spawned(tmp_path, path=path, argv=["train"])
    assert json.loads(said)["status"] == status
    assert words in json.loads(said)["message"]
    assert code == spawn.FAILED


def test_a_folder_that_cannot_be_entered(tmp_path: Path) -> None:
    said, _ = spawned(tmp_path, cwd=str(tmp_path / "gone-\xc3\xa4"))
    assert json.loads(said) == {
        "status": 125,
        "message": f"cannot enter {tmp_path}/gone-ä: No such file or directory",
    }


def test_a_defect_between_fork_and_exec_is_told(tmp_path: Path) -> None:
    said, code = spawned(tmp_path, env={"A": 1})
    assert (json.loads(said)["status"], code) == (125, 125)


def test_the_job_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Also when that one is killed before the job's child could ask for it."""

    def body() -> None:
        spec = {"path": "/bin/sleep", "argv": ["sleep", "60"], "env": {}, "cwd": "/"}
        log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        pid, _ = spawn.spawn_job(spec, log, None)
        (tmp_path / "pid").write_text(str(pid))
        os.kill(os.getpid(), signal.SIGKILL)

    from gpudebug.edges.launcher.recovery import adopting

    with adopting():
        assert os.waitpid(fork(body), 0)[1] == signal.SIGKILL
        pid = int((tmp_path / "pid").read_text())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in {-signal.SIGKILL, spawn.FAILED}


def test_text_and_bytes() -> None:
    name = os.fsencode("ä\udcff").decode("latin-1")
    assert spawn.raw(name) == b"\xc3\xa4\xff"
    assert spawn.shown(name) == "ä\\xff"


def test_a_new_log_is_private_and_appended_to(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        fd = open_log(str(tmp_path / "log"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o600
    assert os.get_blocking(fd)
    other = open_log(str(tmp_path / "log"))
    os.write(fd, b"a")
    os.write(other, b"b")
    os.write(fd, b"c")
    assert (tmp_path / "log").read_bytes() == b"abc"
    os.close(fd)
    os.close(other)


def test_names_arrive_as_their_bytes(tmp_path: Path) -> None:
    name = "log-ä-\udcff"
    os.close(open_log(os.fsencode(str(tmp_path / name)).decode("latin-1")))
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("kind", ["fifo", "fifo with a reader", "device", "folder"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    reader = None
    if kind.startswith("fifo"):
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if "reader" in kind else None
    elif kind == "folder":
        path.mkdir()
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError):
        open_log("/dev/null" if kind == "device" else str(path))
    assert set(os.listdir("/proc/self/fd")) == before
    if reader is not None:
        os.close(reader)


def test_growth_is_counted_from_the_launch_and_over_truncations(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000)
    log = JobLog(str(path))
    assert log.measure() == 0
    os.write(log.fd, b"y" * 10)
    assert log.measure() == 10
    os.ftruncate(log.fd, 0)
    assert log.measure() == 10
    os.write(log.fd, b"y" * 5)
    assert log.measure() == 15
    os.ftruncate(log.fd, 1 << 40)
    assert log.measure() == 15 + (1 << 40) - 5, "a hole counts: whoever reads the file must get past it"
    path.unlink()
    assert log.measure() > 1 << 39, "a removed log is still measured"
    os.close(log.fd)
