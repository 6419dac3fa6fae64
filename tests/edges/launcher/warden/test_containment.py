from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.support.processes import ZOO, fork, left_after, left_of, nobody_left, noted, wait_until
from tests.support.zoo_jobs import JOBS

from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.containment import Tree, end_all, strike

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
