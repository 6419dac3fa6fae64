from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.processes import wait_until

from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.processes import Proc


def recycled(proc: Proc) -> Proc:
    """The same number, as if another process had carried it before."""
    return Proc(
        proc.pid,
        proc.ppid,
        session=proc.session,
        start=proc.start - 1,
        state=proc.state,
        threads=proc.threads,
    )


def test_a_process_is_read_whatever_its_name(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([str(program), "60"])
    try:
        proc = processes.read_proc(child.pid)
        assert proc is not None
        assert (proc.pid, proc.ppid, proc.session) == (child.pid, os.getpid(), os.getsid(0))
        assert proc.alive
    finally:
        child.kill()
        zombie = None
        wait_until(lambda: (processes.read_proc(child.pid) or proc).state == "Z")
        zombie = processes.read_proc(child.pid)
        child.wait()
    assert zombie is not None and not zombie.alive
    assert processes.read_proc(child.pid) is None


def test_a_signal_never_reaches_a_recycled_number() -> None:
    child = subprocess.Popen(["sleep", "60"])
    proc = processes.read_proc(child.pid)
    assert proc is not None
    assert not processes.send(recycled(proc), signal.SIGKILL)
    assert child.poll() is None
    assert processes.send(proc, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not processes.send(proc, signal.SIGKILL)


def test_without_pidfd_the_start_time_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    child = subprocess.Popen(["sleep", "60"])
    proc = processes.read_proc(child.pid)
    assert proc is not None
    assert not processes.send(recycled(proc), signal.SIGKILL)
    assert processes.send(proc, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_descendants_and_who_is_spared() -> None:
    script = "sleep 60 & sh -c 'sleep 60 & echo up; wait' & wait"
    root = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert root.stdout is not None
    root.stdout.readline()
    try:
        wait_until(lambda: len(processes.descendants(root.pid)) == 3)
        found = processes.descendants(root.pid)
        inner = next(proc for proc in found if any(other.ppid == proc.pid for other in found))
        spared = processes.descendants(root.pid, {inner.pid})
        assert len(spared) == 1
        assert spared[0].ppid == root.pid
        own = processes.read_proc(root.pid)
        assert own is not None
        assert {p.pid for p in processes.with_descendants([own, inner])} == {
            root.pid,
            *(p.pid for p in found),
        }
        assert processes.with_descendants([]) == []
    finally:
        os.killpg(root.pid, signal.SIGKILL)
        root.communicate()


def test_newest_first() -> None:
    pids = [proc.pid for proc in processes.newest_first()]
    assert os.getpid() in pids
    assert pids == sorted(pids, reverse=True)


def test_subreaper_is_switched_and_read() -> None:
    statement = (
        "from warden import processes as p; a = p.is_subreaper(); p.set_subreaper(True); "
        "b = p.is_subreaper(); p.set_subreaper(False); print(a, b, p.is_subreaper())"
    )
    folder = Path(processes.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", statement],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False True False\n"


def test_a_refused_prctl_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        processes.prctl(-1, 0)
