"""A number leads to its job, or to one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.jobs import running, until

from gpudebug.core.errors import UsageError
from gpudebug.edges import proc
from gpudebug.edges.attach import AttachError, processes, target

WAITS = "import time; print('ready', flush=True); time.sleep(60)"
RANKS = """
import os, subprocess, sys, time
ranks = [
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={**os.environ, "RANK": str(n),
                     "LOCAL_RANK": str(n), "WORLD_SIZE": "2"})
    for n in range(2)
]
print(" ".join(["ready", *(str(rank.pid) for rank in ranks)]), flush=True)
time.sleep(60)
"""
FORKS = """
import os, time
child = os.fork()
if child:
    print(f"ready {child}", flush=True)
time.sleep(60)
"""


def below(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "job.log").read_text().split()[1:]]


def test_a_process_that_is_gone_is_said_to_be() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(AttachError, match=f"there is no process {gone.pid}"):
        target(gone.pid)
    with pytest.raises(UsageError, match="is no process"):
        target(0)


def test_a_zombie_names_who_has_to_collect_it() -> None:
    dead = subprocess.Popen(["true"])
    until(lambda: (found := processes.read(dead.pid)) is not None and not found.alive)
    with pytest.raises(AttachError, match=rf"zombie.*process {os.getpid()} collects it"):
        target(dead.pid)
    dead.wait()


def test_what_started_gpudebug_is_refused() -> None:
    with pytest.raises(AttachError, match="started this gpudebug"):
        target(os.getpid())
    with pytest.raises(AttachError, match="started this gpudebug"):
        target(os.getppid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_another_users_process_is_roots_alone() -> None:
    code = "import sys; from gpudebug.edges.attach import target; print(target(int(sys.argv[1])).root.pid)"
    job = subprocess.Popen(["sleep", "60"])
    try:
        source = str(Path(__file__).parents[3] / "orchestrator")
        asked = subprocess.run(
            ["/usr/bin/python3", "-c", f"import sys; sys.path.insert(0, {source!r}); {code}", str(job.pid)],
            capture_output=True,
            text=True,
            check=False,
            user=65534,
            group=65534,
            extra_groups=[],
            env={"PATH": "/usr/bin:/bin"},
        )
        if "AttachError" not in asked.stderr:
            pytest.skip(f"another user cannot run Python here: {asked.stderr[-200:]}")
        assert f"process {job.pid} belongs to root" in asked.stderr
        assert f"sudo gpudebug why --pid {job.pid}" in asked.stderr
    finally:
        job.kill()
        job.wait()


def test_a_thread_of_a_process_is_the_process(tmp_path: Path) -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); " + WAITS
    with running(code, tmp_path) as job:
        thread = max(proc.tasks(job.pid))
        assert thread != job.pid
        assert target(thread).root.pid == job.pid


def test_a_rank_belongs_to_the_job_that_launched_it(tmp_path: Path) -> None:
    with running(RANKS, tmp_path) as job:
        ranks = below(tmp_path)
        found = target(ranks[1])
        assert (found.root.pid, found.asked.pid) == (job.pid, ranks[1])
        assert set(found.family) == {job.pid, *ranks}
        for rank in ranks:
            os.kill(rank, 9)


def test_a_copy_of_a_process_belongs_to_it(tmp_path: Path) -> None:
    with running(FORKS, tmp_path) as job:
        (child,) = below(tmp_path)
        assert target(child).root.pid == job.pid
        os.kill(child, 9)


def test_a_training_that_a_shell_or_another_program_started_is_a_job_of_its_own(tmp_path: Path) -> None:
    with running(WAITS, tmp_path) as job:
        found = target(job.pid)
        assert found.root.pid == job.pid
        assert found.python == {job.pid: True}
        assert found.root.argv[0] == sys.executable
