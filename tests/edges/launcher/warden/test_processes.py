from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.processes import ZOO, fork, left_after, left_of, nobody_left, noted, wait_until
from tests.support.zoo_jobs import JOBS

from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.processes import Proc, Tree, end_all, strike


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


CHAIN = """
import os, time
end = time.monotonic() + 20
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
"""


def contained(folder: Path, *argv: str, rounds: int = 250) -> int:
    """In a process of its own, which adopts: starts the job, ends it by rounds of strikes alone."""

    def body() -> None:
        processes.set_subreaper(True)
        os.environ["ZOO_RUN"] = str(folder)
        child = os.fork()
        if child == 0:
            os.execv(sys.executable, [sys.executable, *argv])
        wait_until((folder / "ready").exists)
        tree = Tree(os.getpid())
        for _ in range(rounds):
            tree.strike()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                os._exit(0)
            time.sleep(0.02)
        os._exit(9)

    return os.waitstatus_to_exitcode(os.waitpid(fork(body), 0)[1])


@pytest.mark.parametrize("name", sorted(JOBS))
def test_a_tree_ends_with_no_child_left(tmp_path: Path, name: str) -> None:
    with nobody_left([tmp_path]):
        assert contained(tmp_path, str(ZOO), name, "stay", str(tmp_path)) == 0
        assert left_after([tmp_path], 0.0) == {}


def test_a_chain_that_forks_as_fast_as_it_can(tmp_path: Path) -> None:
    (tmp_path / "ready").touch()
    with nobody_left([tmp_path]):
        assert contained(tmp_path, "-S", "-c", CHAIN) == 0
        assert left_after([tmp_path], 0.0) == {}


def test_the_spared_are_spared() -> None:
    def body() -> None:
        processes.set_subreaper(True)
        spared, other = (os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60") for _ in range(2))
        struck = Tree(os.getpid()).strike({spared})
        assert [proc.pid for proc in struck] == [other]
        assert os.waitpid(other, 0)[1] == signal.SIGKILL
        state = processes.read_proc(spared)
        assert state is not None and state.state in "SR", "not even stopped"
        os.kill(spared, signal.SIGKILL)
        os.waitpid(spared, 0)

    assert os.waitpid(fork(body), 0)[1] == 0


def test_end_all_says_whom_it_killed_and_who_is_left() -> None:
    child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    proc = processes.read_proc(child)
    assert proc is not None

    def find() -> list[processes.Proc]:
        now = processes.read_proc(child)
        return [now] if now else []

    killed, left = end_all(find, 5.0, lambda: os.waitpid(child, 0))
    assert ([p.key for p in killed], left) == ([proc.key], [])
    assert strike(find) == []


def test_what_cannot_be_killed_ends_the_waiting() -> None:
    """A process that stays: here because it is not the one that carried the number before."""
    child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    now = processes.read_proc(child)
    assert now is not None
    earlier = processes.Proc(child, now.ppid, session=now.session, start=now.start - 1, state="D", threads=1)
    _, left = end_all(lambda: [earlier], 0.1)
    assert [proc.pid for proc in left] == [child]
    assert processes.send(now, signal.SIGKILL), "it was never touched"
    os.waitpid(child, 0)


def test_the_helpers_can_see_a_survivor(tmp_path: Path) -> None:
    """The checks of these tests fail when somebody is left."""
    child = os.fork()
    if child == 0:
        os.execve(
            sys.executable,
            [sys.executable, str(ZOO), "daemon", "stay", str(tmp_path)],
            {"ZOO_RUN": str(tmp_path)},
        )
    wait_until((tmp_path / "ready").exists)
    with nobody_left([tmp_path]):
        assert len(noted(tmp_path)) == 2
        assert len(left_of([tmp_path])[tmp_path.name]) == 2
        assert left_after([tmp_path], 0.1) != {}
    os.waitpid(child, 0)
    assert left_after([tmp_path]) == {}
