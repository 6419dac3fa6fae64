"""What processes did, from scan to scan: real ones, and tables of the kernel that are made up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gpudebug.core.command.program import RunProcess, programs
from gpudebug.edges.devices.deeds import ProcessDeeds
from gpudebug.edges.devices.proctree import ProcessTree
from gpudebug.edges.proc import ProcessStat

# Above the kernel's limit no process has a command line to be read.
ABOVE = 2**22
WORKS = "import time\nwhile True: sum(range(20000)); time.sleep(0.01)"
LAUNCHERS = {
    "captured": "import subprocess as s, sys; s.run([sys.executable, *sys.argv[1:]], capture_output=True)",
    "lines": "import subprocess as s, sys\n"
    "for line in s.Popen([sys.executable, *sys.argv[1:]], stdout=-1).stdout: print(line)",
    "asyncio": "import asyncio, sys\nasync def main():\n"
    "    await (await asyncio.create_subprocess_exec(sys.executable, *sys.argv[1:])).wait()\n"
    "asyncio.run(main())",
}


def process(pid: int, parent: int, cpu_s: float, name: str = "python", **more: object) -> ProcessStat:
    known = {"state": "S", "forked": False, **more}
    return ProcessStat(
        pid=ABOVE + pid,
        name=name,
        parent=ABOVE + parent,
        cpu_s=cpu_s,
        reaped_s=0.0,
        start=1,
        rss_mb=1.0,
        **known,
    )  # type: ignore[arg-type]


def look(
    job: subprocess.Popen[bytes], log: Path, told: Callable[[RunProcess], object], wanted: object
) -> None:
    """Scan until the first program tells what is wanted: on a busy machine that takes longer."""
    tree = ProcessTree(os.getpid(), log=str(log))
    tree.start(job.pid)
    until, found = time.monotonic() + 15, None
    try:
        while found != wanted and time.monotonic() < until:
            time.sleep(0.25)
            tree.scan()
            found = next(map(told, programs(tree.seen)), None)
        assert found == wanted
    finally:
        for one in tree.seen:
            with suppress(ProcessLookupError):
                os.kill(one.pid, 9)
        job.wait()


@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
def test_a_parent_that_only_waits_is_no_program(tmp_path: Path, launcher: str) -> None:
    with (tmp_path / "log").open("wb") as log:
        job = subprocess.Popen([sys.executable, "-c", launcher, "-c", WORKS], stdout=log)
    look(job, tmp_path / "log", lambda one: (one.parent, one.cores), (job.pid, len(os.sched_getaffinity(0))))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("PYTHON -c WORKS", ("log", "", False)),
        ("env -i PYTHON -c WORKS", ("log", "env", True)),
        ("PYTHON -E -c WORKS", ("log", "-E", True)),
        ("PYTHON -Iu -c WORKS", ("log", "-I", False)),
        ("PYTHON -c WORKS | grep loss", ("pipe grep", "", False)),
        ("PYTHONPATH=/x PYTHON -c WORKS", ("log", "path", False)),
        ("PYTHON -c WORKS > other", ("file", "", False)),
        ("PYTHON -c WORKS ipykernel_launcher", ("kernel", "", False)),
    ],
)
def test_where_its_output_and_its_probe_stay(
    tmp_path: Path, command: str, expected: tuple[str, str, bool]
) -> None:
    text = command.replace("PYTHON ", f"{sys.executable} ").replace("WORKS", f"'{WORKS}'")
    ours = {"GPUDEBUG_RECORDS_DIR": str(tmp_path), "PYTHONPATH": "/gpudebug/training/probe:/mine"}
    env = {**os.environ, "PYTHONUNBUFFERED": "1", **ours}
    with (tmp_path / "log").open("wb") as log:
        job = subprocess.Popen(["bash", "-c", f"{text}; true"], stdout=log, cwd=tmp_path, env=env)
    look(job, tmp_path / "log", lambda one: (one.output, one.apart, one.buffers), expected)


def test_what_a_worker_is() -> None:
    deeds = ProcessDeeds()
    table = [
        process(2, 1, 5.0),
        process(3, 2, 9.0, forked=True),
        process(4, 2, 9.0, "pt_data_worker"),
        process(5, 3, 9.0, "ffmpeg"),
        process(6, 1, 9.0, forked=True),
        process(7, 2, 9.0, state="Z"),
    ]
    deeds.take(1.0, {one.pid: one for one in table}, adopter=ABOVE + 1)
    serving = {one.pid - ABOVE: one.serves for one in deeds.seen(0.0)}
    assert serving == {2: False, 3: True, 4: True, 5: True, 6: False}


def test_what_it_used_beside_its_children() -> None:
    deeds = ProcessDeeds()
    parent, child = process(2, 1, 3.0), process(3, 2, 0.0)
    deeds.take(1.0, {parent.pid: parent}, 0)
    deeds.take(2.0, {one.pid: one for one in (parent._replace(cpu_s=4.0), child)}, 0)
    deeds.take(3.0, {one.pid: one for one in (parent._replace(cpu_s=4.5), child)}, 0)
    deeds.take(4.0, {parent.pid: parent._replace(cpu_s=6.0)}, 0)
    first = next(one for one in deeds.seen(0.0) if one.pid == parent.pid)
    assert (first.beside_s, first.beside_cpu_s, first.cpu_s) == (2.0, 2.0, 6.0)
    assert [one.pid for one in deeds.seen(0.0, alive={child.pid: child})] == [child.pid]
