"""Processes on a GPU that are not the run's own, listed by a scripted driver."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from tests.support import nvml
from tests.support.sampling import SamplerProcess, numbers

from gpudebug.edges import devices

GONE = 4_000_000  # Above the largest PID of a 22-bit kernel.


def listing(folder: Path, *pids: int) -> Path:
    path = folder / "pids"
    path.write_text("".join(f"{pid}\n" for pid in pids))
    return path


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that is not below the run's root."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def job() -> Iterator[tuple[int, int]]:
    """PIDs of the root of a run's tree and of a process below it, which ends with it."""
    code = "import subprocess; p = subprocess.Popen(['cat']); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as root:
        assert root.stdin is not None
        assert root.stdout is not None
        yield root.pid, int(root.stdout.readline())
        root.stdin.close()


def counts(folder: Path, root: int, *later: Sequence[int], defines: Sequence[str] = ()) -> list[float]:
    """`foreign_procs` of a run below `root`, a second with each list of PIDs."""
    env = nvml.standin(folder, f"gpu 0 util=40 procs={folder / 'pids'}", *defines)
    with SamplerProcess(folder, devices.resolve("nvml", env).spec, env, root_pid=root) as run:
        assert run.answer.get("ready"), run.answer
        run.launch()
        for pids in ((), *later):
            if pids:
                listing(folder, *pids)
            time.sleep(1.1)
        assert run.stop() == 0
    return numbers(run.rows(), "foreign_procs")


def test_only_strangers_are_counted(tmp_path: Path, job: tuple[int, int], stranger: int) -> None:
    listing(tmp_path)
    # The run's own are looked for in the tree again; one that has just ended has no name any more.
    found = counts(tmp_path, job[0], job, (*job, stranger), (GONE,))
    assert [count for count, _ in groupby(found)] == [0, 1, 0]


def test_who_was_there_before_the_launch_is_foreign_whether_or_not_it_has_a_name_here(
    tmp_path: Path, job: tuple[int, int], stranger: int
) -> None:
    listing(tmp_path, stranger, GONE)
    assert set(counts(tmp_path, job[0])) == {2}


def test_an_old_driver_lists_processes_under_their_old_name(
    tmp_path: Path, job: tuple[int, int], stranger: int
) -> None:
    listing(tmp_path, stranger)
    assert set(counts(tmp_path, job[0], defines=["OLD_DRIVER"])) == {1}


@pytest.mark.parametrize("lack", ["procs_error=4", "\nunsupported=processes"])
def test_a_driver_that_does_not_tell_leaves_it_unknown_with_its_reason(tmp_path: Path, lack: str) -> None:
    env = nvml.standin(tmp_path, f"gpu 0 util=40 {lack}")
    with SamplerProcess(tmp_path, devices.resolve("nvml", env).spec, env) as run:
        run.launch()
        run.wait_for_rows(3)
        run.stop()
    assert numbers(run.rows(), "foreign_procs") == []
    assert run.notes()["missing"]["foreign_procs"]
