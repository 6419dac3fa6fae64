"""The run's process tree as /proc shows it, on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudebug.edges import proc
from gpudebug.edges.devices import proctree
from gpudebug.edges.devices.proctree import VARIABLE, OpenLogs, ProcessTree, is_like_log, marked

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def run(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


FAMILY = """
import os, subprocess, sys, threading, time
if os.fork() == 0:
    time.sleep(60)
started = []
thread = threading.Thread(target=lambda: started.append(subprocess.Popen(["sleep", "60"])))
thread.start()
while not started:
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(60)
"""


def test_children_of_all_threads_are_in_the_tree(start: Start) -> None:
    job = start(FAMILY)
    ready(job)
    tree = ProcessTree(os.getpid())
    found = tree.scan()
    below = [process for process in found.values() if process.parent == job.pid]
    assert sorted(process.forked for process in below) == [False, True]
    assert not found[job.pid].forked
    for process in below:
        os.kill(process.pid, 9)


def test_what_is_excluded_is_left_out_with_all_below_it(start: Start) -> None:
    job = start(FAMILY)
    ready(job)
    below = proc.children(job.pid)
    found = ProcessTree(os.getpid(), [job.pid]).scan()
    assert len(below) == 2
    assert not {job.pid, *below} & set(found)
    for pid in below:
        os.kill(pid, 9)


def test_a_name_with_brackets_and_spaces_is_read_whole(start: Start) -> None:
    job = start(
        "import time; open('/proc/self/comm', 'w').write('a) R (b c')\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    ready(job)
    process = proc.read_process(job.pid)
    assert process is not None
    assert (process.name, process.parent) == ("a) R (b c", os.getpid())


def test_a_process_that_is_gone_is_none() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert proc.read_process(child.pid) is None
    assert proctree.cpu_clock(child.pid) is None
    assert proc.children(child.pid) == []
    assert proctree.moved_bytes(child.pid) is None


def test_the_cpu_clock_is_that_of_the_process() -> None:
    before = proctree.cpu_clock(os.getpid())
    used = time.process_time()
    while time.process_time() - used < 0.05:
        pass
    after = proctree.cpu_clock(os.getpid())
    assert before is not None
    assert after is not None
    assert after - before >= 0.05
    assert after == pytest.approx(time.process_time(), abs=0.05)


def test_host_columns_of_a_working_tree(start: Start, tmp_path: Path) -> None:
    job = start(
        "import os, time\n"
        f"file = open({str(tmp_path / 'data')!r}, 'wb')\n"
        "print('ready', flush=True); input()\n"
        "file.write(b'x' * 8 * 2**20); file.flush(); os.fsync(file.fileno())\n"
        "used = time.process_time()\n"
        "while time.process_time() - used < 0.3: pass\n"
        "print('ready', flush=True); input()"
    )
    ready(job)
    assert job.stdin is not None
    tree = ProcessTree(os.getpid())
    first = tree.read()
    began = time.monotonic()
    assert (first.cpu_util, first.read_mb_s, first.write_mb_s) == (None, None, None)
    assert first.procs == 1
    assert first.rss_mb is not None
    assert first.rss_mb > 3
    job.stdin.write(b"\n")
    job.stdin.flush()
    ready(job)
    second = tree.read()
    span = time.monotonic() - began
    assert second.cpu_util is not None
    assert second.cpu_util * span == pytest.approx(30, abs=8)
    if "write_mb_s" in tree.missing or second.write_mb_s == 0:
        pytest.skip("this kernel does not account the file system's writes")
    assert second.write_mb_s is not None
    assert second.write_mb_s * span == pytest.approx(8, abs=1)


def test_what_a_child_used_that_came_and_went_between_two_readings_counts(start: Start) -> None:
    work = "import time\\nwhile time.process_time() < 0.4: pass"
    job = start(
        "import subprocess, sys\nprint('ready', flush=True); input()\n"
        f"subprocess.run([sys.executable, '-c', '{work}'])\nprint('ready', flush=True); input()"
    )
    ready(job)
    assert job.stdin is not None
    tree = ProcessTree(os.getpid())
    tree.read()
    began = time.monotonic()
    job.stdin.write(b"\n")
    job.stdin.flush()
    ready(job)
    reading = tree.read()
    assert reading.procs == 1
    assert reading.cpu_util is not None
    assert reading.cpu_util * (time.monotonic() - began) == pytest.approx(40, abs=10)


def test_two_readings_close_together_make_no_rate(start: Start) -> None:
    ready(start("print('ready', flush=True); input()"))
    tree = ProcessTree(os.getpid())
    tree.read()
    again = tree.read()
    assert again.cpu_util is None
    assert again.procs == 1


def test_an_empty_tree_has_no_process_and_no_memory() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    reading = ProcessTree(child.pid).read()
    assert (reading.procs, reading.rss_mb) == (0, 0)


def test_a_walk_through_all_processes_finds_the_same_children(start: Start) -> None:
    job = start(FAMILY)
    ready(job)
    below = proc.children(job.pid)
    walked = proc.walked_children()
    assert sorted(walked(job.pid)) == sorted(below)
    assert job.pid in walked(os.getpid())
    assert walked(below[0]) == []
    for pid in below:
        os.kill(pid, 9)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read the traffic of every process")
def test_traffic_that_may_not_be_read_is_unknown_with_its_reason(start: Start) -> None:
    # A process that is not dumpable belongs to root in /proc: prctl(2), PR_SET_DUMPABLE.
    ready(start("import ctypes; ctypes.CDLL(None).prctl(4, 0); print('ready', flush=True); input()"))
    tree = ProcessTree(os.getpid())
    tree.read()
    time.sleep(0.15)
    reading = tree.read()
    assert (reading.read_mb_s, reading.write_mb_s) == (None, None)
    assert "Permission denied" in tree.missing["read_mb_s"]
    assert reading.cpu_util is not None


WAIT = "import subprocess, sys\nprint(flush=True)\nsys.stdin.read()"


@contextmanager
def process(**variables: str) -> Iterator[int]:
    started = subprocess.Popen(
        [sys.executable, "-c", WAIT],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    started.stdout.readline()
    try:
        yield started.pid
    finally:
        started.communicate()


def test_the_mark_is_the_whole_of_a_variable(tmp_path: Path) -> None:
    mark = str(tmp_path)
    with (
        process(**{VARIABLE: mark}) as step,
        process(**{VARIABLE: f"{mark}-2"}),
        process(X=f"{VARIABLE}={mark}"),
    ):
        assert marked(mark, ()) == [step]
        assert marked(mark, {step}) == []


def test_a_step_that_carries_the_mark_is_in_the_tree_until_it_ends(tmp_path: Path) -> None:
    mark = str(tmp_path)
    with process() as root:
        trees = ProcessTree(root), ProcessTree(root, marker=mark)
        with process(**{VARIABLE: mark}) as step:
            for tree in trees:
                tree.read()
            assert [list(tree.members) for tree in trees] == [[], [step]]
        trees[1].read()
        assert trees[1].members == {}


WRITER = "import sys; f = open(sys.argv[1], 'w'); print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("path", "like"),
    [
        ("/a/runs/events.out.tfevents.1700000000.host.7.0", True),
        ("/a/wandb/run-1/run-1.wandb", True),
        ("/a/progress.csv", True),
        ("/a/metrics.jsonl", True),
        ("/a/progress.csv (deleted)", False),
        ("/a/model.pt", False),
        ("pipe:[123]", False),
    ],
)
def test_names_of_loggers(path: str, like: bool) -> None:
    assert is_like_log(path) is like


def test_what_is_open_to_write_is_seen_and_what_is_read_is_not(tmp_path: Path) -> None:
    for name in ("read.csv", "other.txt", "closed.csv"):
        (tmp_path / name).write_text("")
    found = OpenLogs()
    with (
        (tmp_path / "progress.csv").open("a"),
        (tmp_path / "both.jsonl").open("w+"),
        (tmp_path / "read.csv").open(),
        (tmp_path / "other.txt").open("a"),
    ):
        found.look([os.getpid(), 2**22 - 1])
    found.look([os.getpid()])
    own = [path for path in found.paths if path.startswith(str(tmp_path))]
    assert sorted(own) == [str(tmp_path / "both.jsonl"), str(tmp_path / "progress.csv")]


def test_it_looks_often_at_first_and_seldom_later(tmp_path: Path) -> None:
    found = OpenLogs()
    for _ in range(11):
        found.look([])
    with (tmp_path / "late.csv").open("w"):
        for look in range(5):
            found.look([os.getpid()])
            seen = str(tmp_path / "late.csv") in found.paths
            assert seen is (look >= 3)


def test_the_process_tree_tells_of_its_members_alone(tmp_path: Path) -> None:
    """This process is the root, and no member: what it writes is not the job's."""
    tree = ProcessTree(os.getpid())
    words = [sys.executable, "-c", WRITER, str(tmp_path / "job.csv")]
    with (
        (tmp_path / "mine.csv").open("w"),
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job,
    ):
        assert job.stdout is not None
        job.stdout.readline()
        tree.read()
        job.communicate()
    assert tree.written == [str(tmp_path / "job.csv")]
