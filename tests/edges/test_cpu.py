"""The CPU stand-in on real programs: what it reports, and which process it follows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.sampling import SamplerProcess, mean_util, numbers

from gpudebug.edges.devices import ProcessTree, cpu
from gpudebug.edges.devices.proctree import Process

# Works 40 of every 100 ms by its own CPU clock, however busy the machine is.
DUTY = """
import sys, time
def work(share, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began, used = time.monotonic(), time.process_time()
        while time.process_time() - used < share / 10:
            pass
        time.sleep(max(0.0, began + 0.1 - time.monotonic()))
"""

Start = Callable[[list[str]], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs in sessions of their own and kills them at the end."""
    running: list[subprocess.Popen[bytes]] = []

    def run(argv: list[str]) -> subprocess.Popen[bytes]:
        running.append(subprocess.Popen(argv, start_new_session=True))
        return running[-1]

    yield run
    for process in running:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        finally:
            process.wait()


def follow(folder: Path, job: subprocess.Popen[bytes], seconds: float, cores: float = 1.0) -> SamplerProcess:
    with SamplerProcess(folder, {"kind": "cpu", "cores": cores}, root_pid=os.getpid()) as run:
        run.launch(job.pid)
        time.sleep(seconds)
        assert run.stop() == 0
    return run


def python(*lines: str) -> list[str]:
    return [sys.executable, "-c", DUTY + "\n".join(lines)]


def test_a_program_that_works_two_fifths_of_the_time_reads_forty(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(python("work(0.4)")), 3)
    rows = run.rows()
    assert mean_util(rows, start=0.5) == pytest.approx(40, abs=4)
    assert {(row["gpu_index"], row["gpu_uuid"]) for row in rows} == {("0", "CPU")}
    assert all(1 < used < 200 for used in numbers(rows, "mem_used_mb"))
    assert rows[0]["new_samples"] == "0"


def test_a_hundred_percent_is_all_cores(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(python("work(0.4)")), 2, cores=4)
    assert mean_util(run.rows(), start=0.5) == pytest.approx(10, abs=2)


def test_a_program_that_only_waits_reads_zero(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(["sleep", "60"]), 1)
    assert mean_util(run.rows()) == pytest.approx(0, abs=1)


def test_a_shell_around_the_program_is_not_what_is_measured(tmp_path: Path, start: Start) -> None:
    program = tmp_path / "train.py"
    program.write_text(DUTY + "work(0.4)")
    run = follow(tmp_path, start(["sh", "-c", f"true; {sys.executable} {program}; true"]), 2)
    assert mean_util(run.rows(), start=0.6) == pytest.approx(40, abs=4)


def test_a_launcher_that_starts_the_program_is_not_what_is_measured(tmp_path: Path, start: Start) -> None:
    program = tmp_path / "train.py"
    program.write_text(DUTY + "work(0.4)")
    launcher = f"import subprocess, sys\nsubprocess.run([sys.executable, {str(program)!r}])"
    run = follow(tmp_path, start([sys.executable, "-c", launcher]), 2)
    assert mean_util(run.rows(), start=0.6) == pytest.approx(40, abs=4)


def test_a_program_that_replaces_itself_is_followed(tmp_path: Path, start: Start) -> None:
    program = tmp_path / "train.py"
    program.write_text(DUTY + "work(0.4)")
    run = follow(tmp_path, start(["sh", "-c", f"exec {sys.executable} {program}"]), 1.5)
    assert mean_util(run.rows(), start=0.5) == pytest.approx(40, abs=4)


@pytest.mark.parametrize(
    "worker",
    [
        "if os.fork() == 0: work(0.9)",
        "multiprocessing.get_context('spawn').Process(target=sum, args=(range(10**12),)).start()",
    ],
    ids=["fork", "spawn"],
)
def test_loader_workers_are_not_what_is_measured(tmp_path: Path, start: Start, worker: str) -> None:
    run = follow(tmp_path, start(python("import multiprocessing, os", worker, "work(0.2)")), 2.5)
    assert mean_util(run.rows(), start=1) == pytest.approx(20, abs=4)


def test_ended_threads_of_the_program_count(tmp_path: Path, start: Start) -> None:
    thread = "threading.Thread(target=work, args=(0.4, 0.1))"
    program = python("import threading", "while True:", f"    t = {thread}; t.start(); t.join()")
    run = follow(tmp_path, start(program), 2)
    assert mean_util(run.rows(), start=0.5) == pytest.approx(40, abs=6)


def test_after_the_end_no_sample_is_new(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(python("work(0.4, 0.5)")), 1.5)
    late = [row for row in run.rows() if float(row["elapsed"]) > 1.1]
    assert {row["new_samples"] for row in late} == {"0"}
    assert {row["mem_used_mb"] for row in late} == {""}


def test_the_next_program_of_a_shell_is_followed(tmp_path: Path, start: Start) -> None:
    program = tmp_path / "train.py"
    program.write_text(DUTY + "work(float(sys.argv[1]), 1.2)")
    run = follow(
        tmp_path, start(["sh", "-c", f"for s in 0.2 0.6; do {sys.executable} {program} $s; done"]), 2.4
    )
    early = [row for row in run.rows() if float(row["elapsed"]) < 1.1]
    assert mean_util(early, start=0.4) == pytest.approx(20, abs=5)
    assert mean_util(run.rows()[:-1], start=1.8) == pytest.approx(60, abs=8)


def tree(*processes: tuple[int, int, float, bool, str]) -> dict[int, Process]:
    return {
        pid: Process(pid, name, "S", parent, forked, cpu_s, 0.0, 1, 10.0)
        for pid, parent, cpu_s, forked, name in processes
    }


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ((), None),
        (((2, 1, 0.1, False, "sh"), (3, 2, 5.0, False, "python")), 3),
        (((2, 1, 5.0, False, "python"), (3, 2, 9.0, True, "python")), 2),
        (((2, 1, 5.0, False, "python"), (3, 2, 9.0, False, "pt_data_worker")), 2),
        (((2, 1, 5.0, False, "python"), (3, 2, 0.0, True, "python"), (4, 3, 9.0, False, "ffmpeg")), 2),
        (((2, 1, 9.0, True, "python"),), 2),
        (((2, 1, 1.0, False, "torchrun"), (3, 2, 7.0, False, "rank"), (4, 2, 8.0, False, "rank")), 4),
    ],
    ids=["empty", "shell", "fork", "named worker", "below a worker", "daemonised", "ranks"],
)
def test_the_training_process(
    processes: tuple[tuple[int, int, float, bool, str], ...], expected: int
) -> None:
    # PID 1 stands for the root. Above the kernel's limit no process has a command line to be read.
    above = 2**22
    shifted = [(pid + above, parent + above, *rest) for pid, parent, *rest in processes]
    chosen = cpu.training_process(tree(*shifted), 1 + above)
    assert (chosen.pid - above if chosen else None) == expected


def test_the_cores_are_those_of_the_affinity() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpu.available_cores() <= 1
    finally:
        os.sched_setaffinity(0, before)
    assert 0 < cpu.available_cores() <= len(before)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_a_quota_is_read_from_either_version_of_cgroups(
    tmp_path: Path, files: dict[str, str], quota: float | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cpu.quota(tmp_path) == quota


def test_the_device_says_that_it_is_no_gpu() -> None:
    device = cpu.CpuDevice(2.0, ProcessTree(os.getpid()))
    described = device.describe()[0]
    assert (described["uuid"], described["kind"], described["cores"]) == ("CPU", "cpu", 2.0)
    assert described["memory_total_mb"] > 100
    assert "stands in" in device.missing["power_w"]
