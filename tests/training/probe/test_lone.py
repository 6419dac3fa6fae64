"""The main thread of programs that PyTorch does not train in."""

from __future__ import annotations

import json
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
from tests.support.campaigns import environment
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.probed import PROBE, Told, lines_of

from gpudebug.core.inside.stacks import read_stacks, stacks_evidence
from gpudebug.core.inside.stacks.shares import share, waits
from gpudebug.core.records import Stacks

# A program counts as no short one at once.
BEGINS = f"""
import os, subprocess, sys, time, warnings, _thread
sys.path.append({str(PROBE)!r})
warnings.simplefilter("error")
from gpudebug_probe import lone
lone.SHORT_S = 0.05
lone.watch(os.environ["GPUDEBUG_RECORDS_DIR"])
"""


def run(folder: Path, code: str, python: str = sys.executable) -> Told:
    records = folder / "records"
    records.mkdir()
    (folder / "train.py").write_text(BEGINS + code)
    env = environment({"GPUDEBUG_RECORDS_DIR": str(records), "GPUDEBUG_T0": "0.5"})
    done = subprocess.run(
        [python, "train.py"], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    return Told(done.returncode, done.stdout, done.stderr, lines_of(records))


def training(told: Told) -> Stacks:
    text = "".join(json.dumps(line) + "\n" for line in told.lines)
    evidence = stacks_evidence(read_stacks(text), None)
    assert evidence is not None and evidence.training is not None
    return evidence.training


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_without_pytorch_tells_where_it_waits(tmp_path: Path, version: str) -> None:
    code = "def pull():\n    time.sleep(0.8)\npull()\nprint('torch' in sys.modules)\n"
    told = run(tmp_path, code, interpreter(version))
    assert (told.status, told.out, told.err) == (0, "False\n", "")
    assert {line["of"] for line in told.lines} == {"main"}
    found = training(told)
    assert share(found, stack=r"train\.py:pull$", state="waiting").value > 0.7
    assert share(found, stack=r"train\.py:pull$", phase="other").value > 0.7
    # As far as the kernel shows it.
    assert waits(found, "other") > 0.5 or not share(found, stack=r"^\(kernel\):").value


@pytest.mark.parametrize("start", ["-m pkg.train", "folder", "app.pyz", "-m cProfile {}", "-m trace -t {}"])
def test_a_program_is_seen_however_python_starts_it(tmp_path: Path, start: str) -> None:
    code = BEGINS + "def pull():\n    time.sleep(0.8)\npull()\n"
    plain, module = tmp_path / "train.py", tmp_path / "pkg" / "train.py"
    for path in (plain, module, tmp_path / "folder" / "__main__.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    zipapp.create_archive(tmp_path / "folder", tmp_path / "app.pyz")
    records = tmp_path / "records"
    records.mkdir()
    env = environment({"GPUDEBUG_RECORDS_DIR": str(records), "GPUDEBUG_T0": "0.5"})
    command = [sys.executable, *start.format(plain.name).split()]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False, timeout=60)
    found = training(Told(done.returncode, "", "", lines_of(records)))
    assert share(found, stack=r"(train|__main__)\.py:pull$", state="waiting").value > 0.7


def test_a_short_program_tells_nothing_and_loads_nothing(tmp_path: Path) -> None:
    code = "lone.leave()\nprint(sorted(m for m in sys.modules if m.startswith('gpudebug_probe.')))\n"
    told = run(tmp_path, code)
    assert (told.out, told.err, told.lines) == ("['gpudebug_probe.lone']\n", "", [])


def test_a_wait_for_a_child_is_a_wait_like_others(tmp_path: Path) -> None:
    code = "subprocess.run([sys.executable, '-c', 'import time; time.sleep(0.6)'], check=True)\n"
    told = run(tmp_path, code)
    assert (told.status, told.err) == (0, "")
    assert any("subprocess.py:run" in frame for line in told.lines for frame in line["frames"])


def test_a_fork_has_no_other_thread_and_its_child_tells_nothing(tmp_path: Path) -> None:
    code = """
for wait in (0.01, 0.3):
    time.sleep(wait)
    pid = os.fork()
    if not pid:
        time.sleep(0.2)
        os._exit(_thread._count())
    print(os.waitpid(pid, 0)[1])
time.sleep(0.3)
print(os.getpid())
"""
    told = run(tmp_path, code)
    assert (told.status, told.err) == (0, "")
    first, second, own = told.out.split()
    assert (first, second) == ("0", "0")
    assert {line["pid"] for line in told.lines} == {int(own)}


def test_it_is_gone_once_pytorch_is_watched(tmp_path: Path) -> None:
    code = "time.sleep(0.4); lone.leave(); print(_thread._count()); time.sleep(0.2)\n"
    told = run(tmp_path, code)
    assert (told.out, told.err, told.lines) == ("0\n", "", [])


def test_with_pytorch_imported_it_waits_for_the_training_first(tmp_path: Path) -> None:
    code = "sys.modules['torch'] = sys\ntime.sleep(0.4)\n"
    assert run(tmp_path, code).lines == []


def test_a_process_of_multiprocessings_tells_nothing(tmp_path: Path) -> None:
    code = """
import multiprocessing
def work(): time.sleep(0.4)
if __name__ == "__main__":
    one = multiprocessing.get_context("spawn").Process(target=work)
    one.start(); one.join(); time.sleep(0.3)
    print(os.getpid())
"""
    told = run(tmp_path, code)
    assert (told.status, told.err) == (0, "")
    assert {line["pid"] for line in told.lines} == {int(told.out)}


MEETS = """
import types
exec(compile({source!r}, {file!r}, "exec"))
{call}
print(lone.met())
"""


@pytest.mark.parametrize(
    ("file", "waits"),
    [
        ("/site/torch/distributed/distributed_c10d.py", True),
        ("/site/torch/nn/parallel/distributed.py", True),
        ("/site/torch/distributed/run.py", False),
        ("/home/me/distributed_c10d.py", False),
    ],
)
def test_waits_for_other_ranks_before_training_are_counted(tmp_path: Path, file: str, waits: bool) -> None:
    body = MEETS.format(source="def barrier():\n    time.sleep(0.5)", file=file, call="barrier()")
    # The program imports something of that name, and no more: what trains is known later.
    told = run(
        tmp_path,
        "import importlib.machinery\nsys.modules['torch'] = m = type(sys)('torch')\n"
        "m.__spec__ = importlib.machinery.ModuleSpec('torch', None)\n" + body,
    )
    assert told.status == 0, told.err
    assert float(told.out) > 0.1 if waits else float(told.out) == 0


def test_a_process_that_nothing_looked_at_does_not_know_what_it_waited(tmp_path: Path) -> None:
    assert run(tmp_path, "print(lone.met())").out == "None\n"
