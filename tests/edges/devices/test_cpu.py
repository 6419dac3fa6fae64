"""The CPU stand-in on real programs: what it reports, and which process it follows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy
import pytest
from tests.support.sampling import SamplerProcess, mean_util, numbers

from gpudebug.edges.devices import ProcessTree, cpu
from gpudebug.edges.proc import ProcessStat

# Works a share of the time, as far as the machine lets it, and writes down the truth: a line of
# (monotonic clock, CPU time of this process) after every 4 ms of work.
DUTY = """
import os, sys, time
def work(share, seconds=60.0, truth=None):
    began, base = time.monotonic(), time.process_time()
    while time.monotonic() < began + seconds:
        used = time.process_time()
        while time.process_time() - used < 0.004:
            pass
        if truth:
            print(time.monotonic(), time.process_time(), file=truth, flush=True)
        while time.process_time() - base > share * (time.monotonic() - began):
            time.sleep(0.002)
TRUTH = open(os.environ["TRUTH"], "a")
"""

# What a process writes when it begins to train.
START = '{"kind": "start", "pid": %d, "t": 1.0, "version": 1}'

Start = Callable[[list[str]], subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs in sessions of their own and kills them at the end."""
    running: list[subprocess.Popen[bytes]] = []
    env = {**os.environ, "TRUTH": str(tmp_path / "truth")}

    def run(argv: list[str]) -> subprocess.Popen[bytes]:
        running.append(subprocess.Popen(argv, start_new_session=True, env=env))
        return running[-1]

    yield run
    for process in running:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        finally:
            process.wait()


def follow(
    folder: Path, job: subprocess.Popen[bytes], seconds: float, cores: float = 1.0, **device: str
) -> SamplerProcess:
    with SamplerProcess(folder, {"kind": "cpu", "cores": cores, **device}, root_pid=os.getpid()) as run:
        run.launch(job.pid)
        time.sleep(seconds)
        assert run.stop() == 0
    return run


def python(*lines: str) -> list[str]:
    return [sys.executable, "-c", DUTY + "\n".join(lines)]


def script(folder: Path, *lines: str) -> str:
    path = folder / "train.py"
    path.write_text(DUTY + "\n".join(lines))
    return f"{sys.executable} {path}"


def compare(folder: Path, run: SamplerProcess, start: float) -> tuple[float, float]:
    """Percent of one core from `start` on: as sampled, and by the program's own account of the same span."""
    rows = [row for row in run.rows() if row["new_samples"] == "1" and float(row["elapsed"]) >= start]
    times = numbers(rows, "elapsed")
    spans = [after - before for before, after in pairwise(times)]
    sampled = sum(value * span for value, span in zip(numbers(rows, "gpu_util")[1:], spans, strict=True))
    turns = [tuple(map(float, line.split())) for line in (folder / "truth").read_text().splitlines()]
    when = [moment - run.t0 for moment, _ in turns]
    assert when[0] < times[0]
    used = [
        float(numpy.interp(moment, when, [cpu_s for _, cpu_s in turns])) for moment in (times[0], times[-1])
    ]
    return sampled / sum(spans), 100 * (used[1] - used[0]) / (times[-1] - times[0])


def assert_true(folder: Path, run: SamplerProcess, start: float) -> None:
    sampled, own = compare(folder, run, start)
    assert sampled == pytest.approx(own, abs=4)


def test_a_program_that_works_two_fifths_of_the_time_reads_forty(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(python("work(0.4, truth=TRUTH)")), 2.5)
    sampled, own = compare(tmp_path, run, 0.5)
    assert sampled == pytest.approx(own, abs=2)
    # Its own account says 40 unless others held the processor.
    assert abs(own - 40) > 2 or sampled == pytest.approx(40, abs=4)
    rows = run.rows()
    assert {(row["gpu_index"], row["gpu_uuid"]) for row in rows} == {("0", "CPU")}
    assert all(1 < used < 200 for used in numbers(rows, "mem_used_mb"))
    assert rows[0]["new_samples"] == "0"


def test_a_hundred_percent_is_all_cores(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(python("work(0.4, truth=TRUTH)")), 1.5, cores=4)
    sampled, own = compare(tmp_path, run, 0.5)
    assert sampled == pytest.approx(own / 4, abs=2)


def test_a_program_that_only_waits_reads_zero(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(["sleep", "60"]), 0.8)
    assert mean_util(run.rows()) == pytest.approx(0, abs=1)


def test_a_shell_around_the_program_is_not_what_is_measured(tmp_path: Path, start: Start) -> None:
    program = script(tmp_path, "work(0.4, truth=TRUTH)")
    run = follow(tmp_path, start(["sh", "-c", f"true; {program}; true"]), 1.8)
    assert_true(tmp_path, run, 0.6)


def test_a_launcher_that_starts_the_program_is_not_what_is_measured(tmp_path: Path, start: Start) -> None:
    program = script(tmp_path, "work(0.4, truth=TRUTH)")
    launcher = f"import subprocess; subprocess.run({program.split()!r})"
    run = follow(tmp_path, start([sys.executable, "-c", launcher]), 1.8)
    assert_true(tmp_path, run, 0.6)


def test_a_program_that_replaces_itself_is_followed(tmp_path: Path, start: Start) -> None:
    run = follow(tmp_path, start(["sh", "-c", f"exec {script(tmp_path, 'work(0.4, truth=TRUTH)')}"]), 1.5)
    assert_true(tmp_path, run, 0.5)


@pytest.mark.parametrize(
    "worker",
    [
        "if os.fork() == 0: work(0.9)",
        "multiprocessing.get_context('spawn').Process(target=sum, args=(range(10**12),)).start()",
    ],
    ids=["fork", "spawn"],
)
def test_loader_workers_are_not_what_is_measured(tmp_path: Path, start: Start, worker: str) -> None:
    run = follow(tmp_path, start(python("import multiprocessing", worker, "work(0.2, truth=TRUTH)")), 2)
    assert_true(tmp_path, run, 0.8)


def test_the_process_that_tells_that_it_trains_is_followed_however_busy_others_are(
    tmp_path: Path, start: Start
) -> None:
    trains = f"print({START!r} % os.getpid(), file=open('probe.jsonl', 'a'), flush=True)"
    program = script(tmp_path, f"os.chdir({str(tmp_path)!r})", trains, "work(0.2, truth=TRUTH)")
    shell = f"{sys.executable} -c 'while True: pass' & {program}"
    run = follow(tmp_path, start(["sh", "-c", shell]), 2.5, probe=str(tmp_path / "probe.jsonl"))
    assert_true(tmp_path, run, 1.2)
    trained = json.loads((tmp_path / "probe.jsonl").read_text())["pid"]
    assert run.notes()["training_pid"] == trained


@pytest.mark.parametrize("told", ["", "garbage\n", START % 2**22 + "\n", START % 1], ids=str)
def test_without_a_training_that_tells_the_busiest_is_followed(
    tmp_path: Path, start: Start, told: str
) -> None:
    (tmp_path / "probe.jsonl").write_text(told)
    program = start(python("work(0.4, truth=TRUTH)"))
    run = follow(tmp_path, program, 1.2, probe=str(tmp_path / "probe.jsonl"))
    assert run.notes()["training_pid"] == program.pid


def test_ended_threads_of_the_program_count(tmp_path: Path, start: Start) -> None:
    thread = "threading.Thread(target=work, args=(0.4, 0.1, TRUTH))"
    program = python("import threading", "while True:", f"    t = {thread}; t.start(); t.join()")
    run = follow(tmp_path, start(program), 1.8)
    assert_true(tmp_path, run, 0.5)


def test_after_the_end_no_sample_is_new(tmp_path: Path, start: Start) -> None:
    job = start(python("work(0.4, 0.4, TRUTH)"))
    with SamplerProcess(tmp_path, {"kind": "cpu", "cores": 1.0}, root_pid=os.getpid()) as run:
        run.launch(job.pid)
        job.wait()
        ended = time.monotonic() - run.t0
        run.wait_for_rows(len(run.rows()) + 4)
        run.stop()
    late = [row for row in run.rows() if float(row["elapsed"]) > ended]
    assert {row["new_samples"] for row in late} == {"0"}
    assert {row["mem_used_mb"] for row in late} == {""}


def test_the_next_program_of_a_shell_is_followed(tmp_path: Path, start: Start) -> None:
    program = script(tmp_path, "work(0.6, 60, TRUTH) if sys.argv[1:] else work(0.2, 1.2)")
    run = follow(tmp_path, start(["sh", "-c", f"{program}; {program} second; true"]), 3.2)
    first = [row for row in run.rows() if 0.3 < float(row["elapsed"]) < 1.2]
    assert any(row["new_samples"] == "1" for row in first)
    assert_true(tmp_path, run, 2.2)


def tree(*processes: tuple[int, int, float, bool, str]) -> dict[int, ProcessStat]:
    return {
        pid: ProcessStat(pid, name, "S", parent, forked, cpu_s, 0.0, 1, 10.0)
        for pid, parent, cpu_s, forked, name in processes
    }


def test_trainings_are_read_on_line_by_line(tmp_path: Path) -> None:
    members = tree((11, 1, 1.0, False, "a"), (12, 1, 2.0, False, "b"), (13, 1, 3.0, False, "c"))
    path = tmp_path / "probe.jsonl"
    found = cpu.Trainings(str(path))
    assert found.among(members) == []
    path.write_text("noise\n" + START % 11 + "\n" + (START % 12)[:20])
    assert [p.pid for p in found.among(members)] == [11]
    path.write_text(
        "noise\n" + START % 11 + "\n" + START % 12 + "\n" + (START % 13).replace("start", "beat") + "\n"
    )
    assert sorted(p.pid for p in found.among(members)) == [11, 12]
    zombie = {12: members[12]._replace(state="Z")}
    assert found.among(zombie) == []


def test_a_file_without_an_end_of_line_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "MOST_READ", 1000)
    path = tmp_path / "probe.jsonl"
    path.write_text("x" * 2500 + "\n" + START % 11 + "\n")
    found = cpu.Trainings(str(path))
    members = tree((11, 1, 1.0, False, "a"))
    assert [len(found.among(members)) for _ in range(3)] == [0, 0, 1]


RANKS = {
    "the busiest of those that tell": ([11, 12], None, {11: 1.0, 12: 5.0, 13: 9.0}, 12),
    "the one that is followed, of equals": ([11, 12], 11, {11: 5.0, 12: 5.4}, 11),
    "another that is clearly busier": ([11, 12], 11, {11: 5.0, 12: 6.0}, 12),
    "one that tells, after one that does not": ([11], 13, {11: 1.0, 13: 9.0}, 11),
}


@pytest.mark.parametrize(("told", "followed", "used", "expected"), RANKS.values(), ids=RANKS)
def test_of_several_ranks_one_is_kept_while_it_is_as_busy_as_any(
    tmp_path: Path, told: list[int], followed: int | None, used: dict[int, float], expected: int
) -> None:
    path = tmp_path / "probe.jsonl"
    path.write_text("".join(START % pid + "\n" for pid in told))
    members = tree(*((pid, 1, seconds, False, "python") for pid, seconds in used.items()))
    found = cpu.busiest(cpu.Trainings(str(path)).among(members), (followed, 1) if followed else None)
    assert found is not None
    assert found.pid == expected


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
    assert "stand-in" in device.missing["power_w"]
