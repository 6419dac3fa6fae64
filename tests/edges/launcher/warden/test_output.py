from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gpudebug.edges.launcher.warden.output import JobLog, open_log


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
