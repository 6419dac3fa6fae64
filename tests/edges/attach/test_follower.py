"""The follower: what it tells of a job, and that it leaves the job as it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs import TRAINING, needs_spy, running, until

from gpudebug.core.inside.attached.record import read_attached
from gpudebug.core.inside.stacks import read_stacks
from gpudebug.edges.attach import follower, processes, spy
from gpudebug.edges.attach.processes import ForeignProcess


def python(pid: int, parent: int, *argv: str, cpu_s: float = 1.0, name: str = "python") -> ForeignProcess:
    return ForeignProcess(pid, 1, parent, 0, "S", name, ("python", *argv), cpu_s, 1)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[int, dict[str, str]]:
    known: dict[int, dict[str, str]] = {}
    monkeypatch.setattr(processes, "variables", lambda pid, names: known.get(pid))
    return known


def kinds(*family: ForeignProcess) -> dict[int, tuple[str, int | None]]:
    parts = follower.parts_of({one.pid: one for one in family})
    return {part.process.pid: (part.of, part.rank) for part in parts}


def test_the_busiest_python_trains_and_its_copies_serve_it(variables: dict[int, dict[str, str]]) -> None:
    found = kinds(
        python(10, 1, "train.py", cpu_s=50.0),
        python(11, 10, "train.py", cpu_s=90.0),
        python(12, 10, "-c", "x", name="pt_data_worker"),
        python(13, 10, "-m", "wandb"),
        ForeignProcess(14, 1, 10, 0, "S", "sh", ("sh",), 99.0, 1),
    )
    assert found == {
        10: ("training", None),
        11: ("worker", None),
        12: ("worker", None),
        13: ("other", None),
    }


def test_rank_0_trains_beside_its_ranks_and_below_their_launcher(
    variables: dict[int, dict[str, str]],
) -> None:
    for rank in range(2):
        variables[20 + rank] = {"RANK": str(rank), "WORLD_SIZE": "2"}
        # A process that a rank starts has the rank's variables.
        variables[30 + rank] = variables[20 + rank]
    found = kinds(
        python(10, 1, "-m", "torch.distributed.run", cpu_s=500.0),
        python(21, 10, "train.py", cpu_s=9.0),
        python(20, 10, "train.py", cpu_s=5.0),
        python(30, 20, "-m", "helper"),
        python(31, 21, "train.py"),
    )
    assert next(iter(found.items())) == (20, ("training", 0))
    assert found[21] == ("rank", 1)
    assert (found[30][0], found[31][0], found[10][0]) == ("other", "worker", "other")


def test_32_ranks_with_workers_are_all_looked_at_and_of_their_workers_some(
    variables: dict[int, dict[str, str]],
) -> None:
    family = [python(1000, 1, "-m", "torch.distributed.run")]
    for rank in range(32):
        variables[2000 + rank] = {"RANK": str(rank), "WORLD_SIZE": "32"}
        family.append(python(2000 + rank, 1000, "train.py"))
        family += [python(3000 + 8 * rank + n, 2000 + rank, "train.py") for n in range(8)]
    parts = follower.parts_of({one.pid: one for one in family})
    chosen = [part.of for part in follower.watched(parts)]
    assert len(parts) == 1 + 32 + 256
    assert (chosen.count("training"), chosen.count("rank")) == (1, 31)
    assert chosen.count("worker") == follower.MOST_WORKERS


def follow(job: int, records: Path, program: str | None, **more: str) -> subprocess.Popen[bytes]:
    found = processes.read(job)
    assert found is not None
    order = follower.FollowOrder(found.pid, found.start, program, *more.values())
    records.mkdir()
    return subprocess.Popen(
        follower.command(order),
        env={**os.environ, follower.RECORDS: str(records), follower.LAUNCH: repr(time.monotonic())},
        stdout=subprocess.PIPE,
    )


def looks(one: subprocess.Popen[bytes], job: Path) -> bool:
    """Whether it has begun: it reads the job's log then."""
    return one.pid in processes.holding(str(job / "job.log"))


def told(records: Path) -> str:
    return (records / follower.RECORD).read_text()


def test_in_each_span_another_loader_worker_is_looked_into_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, str | None]] = []

    class Look:
        before, cpu_s, failed, begun = None, 0.0, None, 0.0

        def __init__(self, program: str | None, pid: int, **_: object) -> None:
            self.spied = program is not None
            asked.append((pid, program))

        def ask(self) -> None: ...

        def finish(self) -> None: ...

    family = [
        follower.Part(python(pid, 1, "train.py"), "worker" if pid > 1 else "training", None)
        for pid in range(1, 5)
    ]
    monkeypatch.setattr(follower, "ProcessLook", Look)
    monkeypatch.setattr(follower, "parts_of", lambda _: family)
    monkeypatch.setenv(follower.RECORDS, str(tmp_path))
    one = follower.JobFollower(follower.FollowOrder(1, 1, "py-spy"), follower.FollowRecord())
    for _ in range(4):
        one._begin_span()
    spied = [pid for pid, program in asked if program and pid > 1]
    assert spied == [2, 3, 4, 2]
    assert [pid for pid, _ in asked].count(3) == 4
    one._end_span()
    assert one._found[2]["why"] == follower._UNREAD
    assert one._found[3]["why"] == "the stacks of another worker were read"


@needs_spy
def test_an_interrupt_ends_it_with_stacks_processes_and_the_growth_of_the_log(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        one = follow(job.pid, tmp_path / "records", spy.find())
        until(lambda: looks(one, tmp_path))
        time.sleep(2.0)
        one.send_signal(signal.SIGINT)
        output, _ = one.communicate(timeout=30)
        assert one.returncode == 0
        assert job.poll() is None
        lines = output.decode().splitlines()
        # What was there before is not a part of what was seen.
        assert lines and all(line.startswith("step") for line in lines[1:])
        assert "ready" not in lines
        text = told(tmp_path / "records")
        stacks, seen = read_stacks(text), read_attached(text)
        assert stacks is not None and seen is not None and seen.main is not None
        assert {line.process.pid for line in stacks.lines} == {job.pid}
        assert any("time.sleep(0.03)" in line.code.values() for line in stacks.lines)
        assert (seen.main.pid, seen.main.why, seen.ended) == (job.pid, None, False)
        assert seen.main.looks > 0
        assert seen.main.place.endswith((" fetch", " update", " <module>"))
        assert seen.observer_cores is not None


def test_without_py_spy_the_reason_is_told_with_what_can_be_seen(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        one = follow(job.pid, tmp_path / "records", None, why="not installed", allow="install it")
        until(lambda: looks(one, tmp_path))
        time.sleep(0.3)
        one.send_signal(signal.SIGINT)
        one.communicate(timeout=30)
        seen = read_attached(told(tmp_path / "records"))
        assert seen is not None and seen.main is not None
        assert (seen.main.why, seen.main.allow, seen.main.looks) == ("not installed", "install it", 0)
        assert seen.main.cores is not None


def test_the_end_of_the_job_is_its_end(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        one = follow(job.pid, tmp_path / "records", None)
        until(lambda: looks(one, tmp_path))
        time.sleep(0.3)
        job.kill()
        job.wait()
        one.communicate(timeout=30)
        assert one.returncode == 0
        seen = read_attached(told(tmp_path / "records"))
        assert seen is not None
        assert seen.ended


def test_another_process_of_the_same_number_is_not_followed(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        (tmp_path / "records").mkdir()
        order = follower.FollowOrder(job.pid, 1, None)
        env = {**os.environ, follower.RECORDS: str(tmp_path / "records")}
        done = subprocess.run(follower.command(order), env=env, timeout=30, check=False)
        assert done.returncode == 0
        assert job.poll() is None


SPAWNS = """
import subprocess, sys, time
print("ready", flush=True)
time.sleep(60)
"""


@needs_spy
def test_no_process_of_it_outlives_it(tmp_path: Path) -> None:
    with running(SPAWNS, tmp_path) as job:
        one = follow(job.pid, tmp_path / "records", spy.find())
        until(lambda: len(processes.family(one.pid)) > 1)
        below = [pid for pid in processes.family(one.pid) if pid != one.pid]
        one.send_signal(signal.SIGTERM)
        one.communicate(timeout=30)
        until(lambda: all(processes.read(pid) is None for pid in below))


def test_the_order_is_one_line_of_json() -> None:
    order = follower.FollowOrder(7, 8, None, 'it\'s "so"', "a\nb")
    argv: Any = follower.command(order)
    code = argv[-1]
    given = code[code.index("main(") + 5 : code.rindex("))")]
    assert follower.FollowOrder(*json.loads(eval(given))) == order


def line(file: Path | str, number: int, uid: int | None = None) -> str:
    return follower.line_of(os.getpid(), os.geteuid() if uid is None else uid, None, str(file), number)


def test_a_line_is_read_without_what_could_be_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text('import os\n    login("hf_abcdefghijklmnopqrstuvwxyz")\n')
    assert line(file, 2) == 'login("...")'
    assert line(file, 9) == ""
    assert follower.line_of(os.getpid(), os.geteuid(), str(tmp_path), "train.py", 1) == "import os"


@pytest.mark.parametrize("name", ["<string>", "", "/dev/zero", "/nowhere/x.py", "a\0b"])
def test_what_is_no_file_of_source_has_no_line(name: str) -> None:
    assert line(name, 1) == ""


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert line(tmp_path / "pipe.py", 1) == ""


def test_a_file_that_the_processes_user_may_not_read_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "shadow"
    secret.write_text("root:x:1\n")
    secret.chmod(0o600)
    assert line(secret, 1, uid=os.geteuid() + 1) == ""
    assert line(secret, 1) == "root:x:1"
