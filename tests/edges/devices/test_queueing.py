"""How long the threads of a run wait for a core, and for whom."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.edges.devices import queueing
from gpudebug.edges.devices.proctree import cpu_clock
from gpudebug.edges.devices.queueing import (
    CoreQueue,
    OthersLoad,
    Queueing,
    ThreadWaits,
    Throttling,
    UsedCores,
    allowed,
    busy,
    others_waiting,
)

needs_counting = pytest.mark.skipif(not queueing.counts_waiting(), reason="the kernel does not count waiting")

SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"
CHURN = """
import os, sys, threading, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print(flush=True)
def work():
    end = time.thread_time() + 0.02
    while time.thread_time() < end: pass
while True:
    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
"""
Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def pinned() -> Iterator[Start]:
    """Start a program on one core, the same for all."""
    core, running = max(os.sched_getaffinity(0)), list[subprocess.Popen[bytes]]()

    def start(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", code, str(core)], stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@needs_counting
def test_two_on_one_core_wait_for_one_another(pinned: Start) -> None:
    one, other = pinned(SPIN), pinned(SPIN)
    waits, began = ThreadWaits(), time.monotonic()
    waits.read([one.pid, other.pid])
    time.sleep(1.0)
    waited, span = waits.read([one.pid, other.pid]), time.monotonic() - began
    # At each moment at most one of the two has the core; on a busy machine neither.
    assert 0.9 < waited < 2.05 * span
    assert waits.threads == 2


@needs_counting
def test_threads_that_come_and_go_make_no_sum_negative(pinned: Start) -> None:
    process = pinned(CHURN)
    waits = ThreadWaits()
    waits.read([process.pid])
    found = []
    for _ in range(10):
        time.sleep(0.05)
        found.append(waits.read([process.pid]))
    assert min(found) >= 0
    process.kill()
    process.wait()
    assert waits.read([process.pid]) == 0
    assert waits.threads == 0


@needs_counting
def test_a_run_beside_a_stranger_was_kept_from_its_core(pinned: Start) -> None:
    run, stranger = pinned(SPIN), pinned(SPIN)
    core = frozenset({max(os.sched_getaffinity(0))})
    queue = CoreQueue()
    queue.start(run.pid)
    began = time.monotonic()
    assert queue.read(began, [run.pid], cpu_clock(run.pid) or 0.0, busy(core)) == Queueing()
    assert queue.read(began + 0.1, [run.pid], 0.0, busy(core)) == Queueing(), "too soon"
    for _ in range(10):
        time.sleep(0.1)
        queue.glance()
    found = queue.read(time.monotonic(), [run.pid], cpu_clock(run.pid) or 0.0, busy(core))
    assert stranger.poll() is None
    assert found.wait is not None and found.stolen is not None and found.demand is not None
    assert found.wait > 30
    assert 30 < found.stolen <= found.wait
    assert found.demand > 50


@needs_counting
def test_waiting_for_ones_own_threads_is_not_stolen() -> None:
    used = UsedCores(frozenset({0, 1}), 0.0, 0.0, whole=True)
    found = queueing._queueing(6.0, 0.0, 2.0, 0.0, 0.0, [8] * 10, used)
    assert (found.wait, found.stolen, found.demand) == (600, 0, 0)
    throttled = queueing._queueing(1.0, 0.9, 0.5, 1.5, 0.0, [3] * 10, used)
    assert throttled.throttled == pytest.approx(90)
    assert throttled.stolen == pytest.approx(10)


@needs_counting
@pytest.mark.parametrize("whole", [True, False])
def test_a_stranger_wants_as_much_whatever_the_run_wants(whole: bool) -> None:
    """One thread that always works, beside runs of 2 and of 8 threads on two cores."""
    for threads in (2, 8):
        share = 2 / (threads + 1)
        mine, others = threads * share, share
        wait = threads - mine
        ready = [threads + 1] * 10
        waiting = others_waiting(wait, mine, others, 0.0, ready, whole=whole)
        assert others + waiting == pytest.approx(1.0)


@needs_counting
@given(*[st.floats(0, 64)] * 4, st.lists(st.integers(0, 500), max_size=8), st.booleans())
def test_nobody_wants_less_than_nothing(
    wait: float, mine: float, others: float, elsewhere: float, ready: list[int], whole: bool
) -> None:
    cores = UsedCores(frozenset({0, 1}), 0.0, 0.0, whole=whole)
    found = queueing._queueing(wait, None, mine, others, elsewhere, ready, cores)
    assert found.demand is not None and found.stolen is not None
    assert found.demand >= 0
    assert 0 <= found.stolen <= 100 * wait + 1e-9


@needs_counting
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("usage_usec 5\nnr_throttled 3\nthrottled_usec 2500000\n", 2.5),
        ("nr_periods 9\nnr_throttled 3\nthrottled_time 1500000000\n", 1.5),
        ("usage_usec 5\n", None),
        ("throttled_usec many\n", None),
    ],
)
def test_throttling_is_read_of_either_version(tmp_path: Path, text: str, seconds: float | None) -> None:
    (tmp_path / "cpu.stat").write_text(text)
    assert queueing.throttled_s(tmp_path / "cpu.stat") == seconds


@needs_counting
def test_the_group_that_was_throttled_most_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, above = tmp_path / "pod" / "job", tmp_path / "pod"
    own.mkdir(parents=True)
    monkeypatch.setattr(queueing, "folders", lambda *_: [own, above, tmp_path])
    for folder, microseconds in ((own, 0), (above, 1_000_000)):
        (folder / "cpu.stat").write_text(f"throttled_usec {microseconds}\n")
    found = Throttling()
    found.follow("self")
    assert found.read() == 0
    (above / "cpu.stat").write_text("throttled_usec 1400000\n")
    assert found.read() == pytest.approx(0.4)
    assert found.read() == 0


@pytest.fixture
def core() -> int:
    return max(os.sched_getaffinity(0))


@pytest.fixture
def spinning(core: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that keeps one core busy."""
    with subprocess.Popen([sys.executable, "-c", SPIN, str(core)], stdout=subprocess.DEVNULL) as process:
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
    monkeypatch.setattr(queueing, "busy", lambda _: stuck)
    load = OthersLoad()
    load.read(0.0, [os.getpid()], 0.0)
    assert load.read(2.0, [os.getpid()], 1.5) is None
    assert load.reason is not None
    assert "/proc/stat" in load.reason


def test_a_process_of_this_machine_has_folders_below_the_root() -> None:
    found = queueing.folders("cpu", os.getpid())
    assert found == queueing.folders("cpu")
    assert all(folder.is_relative_to(queueing.ROOT) for folder in found)


def test_those_above_come_after_the_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(queueing, "lines", lambda _: ["3:cpu,cpuacct:/docker/7", "2:memory:/", "0::/user/7"])
    root = queueing.ROOT
    assert queueing.folders("cpu") == [
        root / "cpu,cpuacct" / "docker" / "7",
        root / "cpu,cpuacct" / "docker",
        root / "cpu,cpuacct",
        root / "user" / "7",
        root / "user",
        root,
    ]
    assert not queueing.in_root("cpu")


def test_what_is_gone_has_none() -> None:
    assert queueing.folders("cpu", 4_000_000) == []
    assert not queueing.in_root("cpu", 4_000_000)
    assert queueing.lines(Path("/proc/4000000/cgroup")) == []
