"""Processes that gpudebug did not start, read from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import killed_at_the_end
from tests.support.jobs import running, until

from gpudebug.edges import proc
from gpudebug.edges.attach import processes

WAITS = "import time; print('ready', flush=True); time.sleep(60)"
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("ready", child.pid, flush=True)
time.sleep(60)
"""


def test_a_process_is_read_with_its_user_command_and_threads() -> None:
    mine = processes.read(os.getpid())
    assert mine is not None
    assert mine.alive
    assert (mine.parent, mine.uid) == (os.getppid(), os.geteuid())
    assert processes.is_python(mine)
    assert mine.threads >= 1
    assert processes.leader_of(os.getpid()) == os.getpid()


def test_a_number_without_a_process_is_none() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert processes.read(gone.pid) is None
    assert processes.family(gone.pid) == {}
    assert proc.tasks(gone.pid) == []
    assert processes.environment(gone.pid) is None


def test_a_process_that_nobody_collected_is_not_alive() -> None:
    dead = subprocess.Popen(["true"])
    until(lambda: (found := processes.read(dead.pid)) is not None and not found.alive)
    dead.wait()


def test_what_is_no_python_is_known_as_such() -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        found = processes.read(other.pid)
        assert found is not None
        until(lambda: processes.is_python(processes.read(other.pid) or found) is False)
        assert processes.read(other.pid).shown == "sleep 60"  # type: ignore[union-attr]
    finally:
        other.kill()
        other.wait()


def test_a_family_is_the_process_and_all_below_it(tmp_path: Path) -> None:
    with running(FAMILY, tmp_path) as job:
        child = int((tmp_path / "job.log").read_text().split()[1])
        assert list(processes.family(job.pid)) == [job.pid, child]
        assert processes.ancestors(child)[0] == job.pid
        os.kill(child, 9)


def test_its_variables_folder_and_output_are_seen(tmp_path: Path) -> None:
    env = {**os.environ, "RANK": "3", "EMPTY": ""}
    with running(WAITS, tmp_path, env=env) as job:
        assert processes.variables(job.pid, ("RANK", "WORLD_SIZE")) == {"RANK": "3"}
        assert processes.folder(job.pid) == str(tmp_path)
        output = processes.output_of(job.pid)
        assert output is not None
        assert Path(output).read_text() == "ready\n"
        assert job.pid in processes.holding(str(tmp_path / "job.log"))
        assert processes.inner_number(job.pid) == job.pid


def test_a_terminal_or_a_pipe_is_no_log() -> None:
    job = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert job.stdout is not None
        job.stdout.readline()
        assert processes.output_of(job.pid) is None
    finally:
        job.kill()
        job.communicate()


def test_secrets_of_a_command_are_not_shown() -> None:
    found = processes.read(os.getpid())
    assert found is not None
    shown = found._replace(argv=("/bin/python", "train.py", "--api-key=abcdefgh12345678")).shown
    assert "abcdefgh12345678" not in shown
    assert shown.startswith("python train.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a PID namespace")
def test_a_number_of_a_container_leads_to_the_process(tmp_path: Path) -> None:
    job = subprocess.Popen(
        ["unshare", "-pf", "--mount-proc", sys.executable, "-c", WAITS],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert job.stdout is not None
        if not job.stdout.readline():
            pytest.skip("PID namespaces are not allowed here")
        (inside,) = [pid for pid in processes.family(job.pid) if pid != job.pid]
        assert processes.inner_number(inside) == 1
        assert inside in processes.numbered_inside(1)
        os.kill(inside, 9)
    finally:
        job.kill()
        job.communicate()


def test_a_program_that_was_started_this_moment_has_its_words() -> None:
    for _ in range(60):
        with killed_at_the_end(subprocess.Popen(["sleep", "60"])) as process:
            found = processes.read(process.pid)
        assert found is not None and found.argv == ("sleep", "60")
