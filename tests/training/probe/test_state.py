"""Processes that train under the probe: what they spend, their children, and what goes wrong in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.probed import Told, lines_of, needs_torch, probed, stories, variables

SETUP = """
import gc, time
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
"""
STORIES = {
    "collects": "train(1)\nlist(map(gc.collect, [2] * 5))\ntrain(1)",
    "collects before it trains": "list(map(gc.collect, [2] * 5))\ntrain(2)",
    "computes": (
        "train(1)\nused = time.process_time()\nwhile time.process_time() < used + 0.3: pass\ntrain(1)"
    ),
    "grows": "train(1)\nkept = b'x' * (200 << 20)\ndel kept\ntrain(1)",
    "threads": "torch.set_num_threads(1)\ntrain(1)",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    folder = tmp_path_factory.mktemp("process")
    return stories(folder, {name: SETUP + code for name, code in STORIES.items()})


@needs_torch
def test_collections_are_timed_while_it_trains(told: dict[str, Told]) -> None:
    counters = told["collects"].counters
    assert counters["gc_n"] >= 5
    before = told["collects before it trains"].counters
    assert before["gc_n"] < 5
    assert 0 <= before["gc_s"] < counters["gc_s"]


@needs_torch
def test_time_and_memory_are_the_process_own(told: dict[str, Told]) -> None:
    first, end = told["computes"].of("beat")[0], told["computes"].end
    assert end["counters"]["cpu_s"] - first["counters"]["cpu_s"] >= 0.3
    first, *_, last = (line["facts"]["peak_host_mb"] for line in told["grows"].of("facts"))
    assert 190 <= last - first <= 260
    facts = told["threads"].facts
    assert (facts["threads"], facts["cpus"]) == (1, len(os.sched_getaffinity(0)))


SPAWNED = """
import os, torch
import torch.multiprocessing as mp
def train(number, steps):
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    print(os.getpid(), flush=True)
if __name__ == "__main__":
    mp.spawn(train, (3,), nprocs=1)
"""


@pytest.mark.slow
@needs_torch
def test_a_spawned_child_that_trains_tells_of_itself(tmp_path: Path) -> None:
    told = probed(tmp_path / "run", SPAWNED)
    assert (told.status, told.err) == (0, "")
    assert {line["pid"] for line in told.lines} == {int(told.out)}
    assert (told.end["steps"], len(told.of("start"))) == (3, 1)


RANKS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3 + dist.get_rank()):
    with net.no_sync():
        net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.slow
@needs_torch
def test_each_rank_tells_which_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "train.py").write_text(RANKS)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*command, "train.py"],
        cwd=tmp_path,
        env=variables(run),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = lines_of(run)
    starts = {line["pid"]: line for line in lines if line["kind"] == "start"}
    ranks = [(line["rank"], line["local_rank"], line["world_size"]) for line in starts.values()]
    assert sorted(ranks) == [(0, 0, 2), (1, 1, 2)]
    steps = {starts[line["pid"]]["rank"]: line["steps"] for line in lines if line["kind"] == "end"}
    assert steps == {0: 3, 1: 4}


# A PyTorch that has none of what is watched.
HOLLOW = {"torch/__init__.py": "__version__ = '0.0'\n", "torch/optim.py": "class SGD: pass\n"}
PROGRAM = """
import sys, torch
from torch.optim import SGD
print("trained", torch.__version__, SGD.__name__)
sys.exit(3)
"""


def hollow(folder: Path) -> Path:
    for name, text in HOLLOW.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / "run"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pytorch_without_what_is_watched_switches_it_off(tmp_path: Path, version: str) -> None:
    told = probed(hollow(tmp_path), PROGRAM, python=interpreter(version))
    assert (told.status, told.out, told.err) == (3, "trained 0.0 SGD\n", "")
    (off,) = told.lines
    assert off["kind"] == "off"
    assert "installing" in off["why"]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_pytorch_nothing_is_told(tmp_path: Path, version: str) -> None:
    told = probed(tmp_path / "run", "import json; print('none')", python=interpreter(version))
    assert (told.status, told.out, told.err, told.lines) == (0, "none\n", "", [])


@pytest.mark.parametrize("flag", ["-I", "-S", "-E"])
def test_a_python_that_takes_no_part_goes_on(tmp_path: Path, flag: str) -> None:
    hollow(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    told = probed(tmp_path / "run", code, flag)
    assert (told.status, told.out) == (3, "trained 0.0 SGD\n")
    # -S skips sitecustomize, the others PYTHONPATH.
    assert told.lines == []


def test_the_user_may_switch_it_off(tmp_path: Path) -> None:
    told = probed(hollow(tmp_path), PROGRAM, GPUDEBUG_PROBE="0")
    assert (told.status, told.out, told.lines) == (3, "trained 0.0 SGD\n", [])
