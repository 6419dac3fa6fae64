"""What others use of a run's cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gpudebug.edges.devices import cores
from gpudebug.edges.devices.cores import OthersLoad, allowed, busy

SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@pytest.fixture
def core() -> int:
    return max(os.sched_getaffinity(0))


@pytest.fixture
def spinning(core: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that keeps one core busy."""
    with subprocess.Popen([sys.executable, "-c", SPIN, str(core)]) as process:
        while os.sched_getaffinity(process.pid) != {core}:
            time.sleep(0.01)
        yield process
        process.kill()


def test_busy_cores_count_seconds(core: int, spinning: subprocess.Popen[bytes]) -> None:
    before = busy(frozenset({core}))
    time.sleep(0.6)
    after = busy(frozenset({core}))
    assert before is not None
    assert after is not None
    # At least what the spinning process got of it, on a machine where others run too.
    assert 0.3 < after.seconds - before.seconds < 5


def test_cores_that_the_kernel_does_not_count_are_unknown() -> None:
    assert busy(frozenset()) is None
    assert busy(frozenset({100_000})) is None


def test_the_cores_are_those_of_the_run_and_not_of_the_machine(
    core: int, spinning: subprocess.Popen[bytes]
) -> None:
    assert allowed([spinning.pid]) == {core}
    assert allowed([]) == frozenset()
    assert allowed([4_000_000]) == frozenset()


def test_a_stranger_is_told_from_the_run_itself(spinning: subprocess.Popen[bytes]) -> None:
    foreign, own = OthersLoad(), OthersLoad()
    began = time.monotonic()
    for load in (foreign, own):
        assert load.read(began, [spinning.pid], 0.0) is None
    assert foreign.read(began + 0.1, [spinning.pid], 0.0) is None, "too soon"
    time.sleep(1.0)
    now = time.monotonic()
    shared = foreign.read(now, [spinning.pid], 0.0)
    alone = own.read(now, [spinning.pid], now - began)
    assert shared is not None
    assert alone is not None
    assert shared > 50
    assert alone < shared - 40


def test_other_cores_begin_anew(core: int) -> None:
    load = OthersLoad()
    assert load.read(0.0, [os.getpid()], 0.0) is None
    process = subprocess.Popen(["sleep", "10"])
    try:
        os.sched_setaffinity(process.pid, {core})
        if len(os.sched_getaffinity(0)) > 1:
            assert load.read(10.0, [process.pid], 0.0) is None
    finally:
        process.kill()
        process.wait()


def test_a_kernel_that_counts_nothing_is_unknown_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = busy(frozenset(os.sched_getaffinity(0)))
    monkeypatch.setattr(cores, "busy", lambda _: stuck)
    load = OthersLoad()
    load.read(0.0, [os.getpid()], 0.0)
    assert load.read(2.0, [os.getpid()], 1.5) is None
    assert load.reason is not None
    assert "/proc/stat" in load.reason
