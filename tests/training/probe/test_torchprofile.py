"""PyTorch's profiler in a training that does not know of it: the trace, what is told, and what goes wrong."""

from __future__ import annotations

import gzip
import json
import signal
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import environment
from tests.support.probed import PROBE, needs_torch

from gpudebug.edges import launcher

pytestmark = needs_torch

ENVIRONMENT = environment({"PYTHONPATH": None, "OMP_NUM_THREADS": "1"})
PROGRAM = """
import os, signal, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Sequence(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return torch.full((16,), index / 4096), index % 2

def train(steps, workers=0, before=lambda step: None):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step, (x, y) in enumerate(DataLoader(Sequence(), batch_size=8, shuffle=True, num_workers=workers)):
        if step == steps:
            break
        before(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    print(losses)
"""


class Training:
    """A program with the probe in it, and the run folder that it tells of itself in."""

    def __init__(self, folder: Path) -> None:
        self.program, self.run = folder / "train.py", folder / "run"
        self.run.mkdir()

    def start(self, code: str, spec: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "GPUDEBUG_RUN_DIR": str(self.run),
            launcher.RECORDS_DIR: str(self.run),
            launcher.TORCH_PROFILE: spec,
        }
        return self.plain(code, launcher.inject({**ENVIRONMENT, **variables}))

    def plain(self, code: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        self.program.write_text(PROGRAM + code)
        words = [sys.executable, str(self.program)]
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / launcher.PROBE).read_text().splitlines()]

    def told(self, pid: int | None = None) -> dict[str, Any]:
        """The last line of a process's profile: the one that counts."""
        own = [line for line in self.lines if pid in (None, line["pid"])]
        return [line for line in own if line["kind"] == "torch_profile"][-1]

    def trace(self, name: str) -> list[dict[str, Any]]:
        with gzip.open(self.run / name) as f:
            events = json.load(f)["traceEvents"]
        return [e for e in events if e.get("ph") == "X"]

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.run.iterdir()}


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def marks(trace: list[dict[str, Any]]) -> list[str]:
    return sorted({e["name"] for e in trace if e["name"].startswith("ProfilerStep#")})


@pytest.mark.slow
def test_what_was_asked_for_is_in_the_trace_and_results_are_the_same_to_the_last_bit(
    training: Training,
) -> None:
    code = "train(30, workers=2)"
    done = training.start(code, "wait=0,warmup=1,active=4,record_shapes,with_stack,profile_memory")
    assert done.returncode == 0, done.stderr
    assert done.stdout == training.plain(code, ENVIRONMENT).stdout
    trace = training.trace("trace.json.gz")
    assert marks(trace) == [f"ProfilerStep#{n}" for n in (1, 2, 3, 4)]
    steps = [e for e in trace if e["name"].startswith("Optimizer.step")]
    linear = [e for e in trace if e["name"] == "aten::linear"]
    assert (len(steps), len(linear)) == (4, 8)
    assert linear[0]["args"]["Input Dims"][0] == [8, 16]
    assert any("train.py" in e["name"] for e in trace if e.get("cat") == "python_function")

    told = training.told()
    assert (told["file"], told["steps"]) == ("trace.json.gz", 4)
    assert told["bytes"] == (training.run / "trace.json.gz").stat().st_size
    assert told["overhead"] <= told["active_step_s"] / told["plain_step_s"] - 1
    assert "why" not in told
    # The loader's workers tell of their stacks alone, and nothing else is left.
    assert {line["pid"] for line in training.lines if line.get("of") != "workers"} == {told["pid"]}
    assert training.files == {"probe.jsonl", "trace.json.gz"}
    assert stat.S_IMODE((training.run / "trace.json.gz").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("active", "plain", "expected"),
    [
        ([1.2, 1.2, 1.2, 1.2], [1.0] * 8, 0.2),
        # One slow iteration among them, of either kind.
        ([1.0, 1.0, 1.0, 5.0], [1.0] * 8, 0.0),
        ([1.2, 1.2], [1.0] * 7 + [3.0], -0.04),
        # Batches that come four at a time.
        ([0.2, 0.2, 0.2, 8.2], [0.1, 0.1, 0.1, 8.1] * 2, 0.0476),
    ],
    ids=["even", "one slow", "one slow without", "bursts"],
)
def test_the_overhead_is_what_means_and_medians_agree_on(
    monkeypatch: pytest.MonkeyPatch, active: list[float], plain: list[float], expected: float
) -> None:
    monkeypatch.syspath_prepend(str(PROBE))
    for name in ("gpudebug_probe", "gpudebug_probe.recorder", "gpudebug_probe.torchprofile"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = import_module("gpudebug_probe.torchprofile").overhead(active, plain)
    assert found == pytest.approx(expected, abs=1e-3)


FORKED = """
import json
# What an optimizer imports is there for all of them.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
ended = {{}}
for name, code in {codes!r}.items():
    child = os.fork()
    if child == 0:
        exec(code)
        sys.exit()
    ended[name] = child, os.waitpid(child, 0)[1]
print(json.dumps(ended))
"""
OWN = """
own = torch.profiler.profile()
train(20, before=lambda step: step == {at} and own.start())
own.stop()
sys.exit(sum(e.name == "aten::linear" for e in own.events()))
"""
AROUND = """
with torch.profiler.profile() as own:
    train(20)
sys.exit(sum(e.name == "aten::linear" for e in own.events()))
"""
IN_THE_WAY = """
os.makedirs(os.path.join(os.environ["GPUDEBUG_RUN_DIR"], f".trace.{os.getpid()}.json", "in the way"))
train(10)
"""
# Each in a forked child: what it does, and the status that it ends with.
CODES = {
    "ends while it is recorded": ("os.environ['RANK'] = '3'; train(6); sys.exit(3)", 3 << 8),
    "ends before": ("train(3)", 0),
    "a profiler of its own in iteration 1": (OWN.format(at=1), 38 << 8),
    "a profiler of its own in iteration 3": (OWN.format(at=3), 34 << 8),
    "a profiler of its own in iteration 5": (OWN.format(at=5), 30 << 8),
    "a profiler of its own in iteration 12": (OWN.format(at=12), 16 << 8),
    "a profiler of its own around it all": (AROUND, 40 << 8),
    "Ctrl-C": ("train(20, before=lambda step: step == 5 and os.kill(os.getpid(), 2))", signal.SIGINT),
    "cannot be written": (IN_THE_WAY, 0),
}


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Training, dict[str, tuple[int, int]]]:
    """A training of each of CODES, with the PID and the status that it ended with."""
    training = Training(tmp_path_factory.mktemp("forked"))
    code = FORKED.format(codes={name: code for name, (code, _) in CODES.items()})
    done = training.start(code, "wait=2,warmup=2,active=4")
    assert done.returncode == 0, done.stderr
    return training, json.loads(done.stdout.splitlines()[-1])


Forked = tuple[Training, dict[str, tuple[int, int]]]


@pytest.mark.parametrize("name", CODES)
def test_each_ends_as_it_would_without(forked: Forked, name: str) -> None:
    """With the profiler of its own, it counts what that recorded: two layers an iteration."""
    assert forked[1][name][1] == CODES[name][1]


def test_a_training_that_ends_too_early_keeps_what_there_is(forked: Forked) -> None:
    training, ended = forked
    told = training.told(ended["ends while it is recorded"][0])
    assert (told["why"], told["steps"]) == ("the training ended after 6 iterations", 2)
    assert told["file"] == "trace.rank3.json.gz"
    assert marks(training.trace("trace.rank3.json.gz"))[:2] == ["ProfilerStep#4", "ProfilerStep#5"]
    told = training.told(ended["ends before"][0])
    assert told["why"] == "the training ended after 3 iterations, before one was recorded"
    assert "file" not in told


@pytest.mark.parametrize(
    ("when", "iteration"), [("around it all", 0), *((f"in iteration {n}", n) for n in (1, 3, 5))]
)
def test_a_training_with_a_profiler_of_its_own_is_left_alone(
    forked: Forked, when: str, iteration: int
) -> None:
    """Before ours begins, while it waits, warms up and records."""
    training, ended = forked
    told = training.told(ended[f"a profiler of its own {when}"][0])
    assert told["why"] == f"the training started a profiler of its own in iteration {iteration}"
    assert "file" not in told


def test_one_that_profiles_itself_later_is_profiled(forked: Forked) -> None:
    training, ended = forked
    told = training.told(ended["a profiler of its own in iteration 12"][0])
    assert "why" not in told
    assert marks(training.trace(told["file"])) == [f"ProfilerStep#{n}" for n in (4, 5, 6, 7)]


def test_one_that_ctrl_c_ends_keeps_what_there_is(forked: Forked) -> None:
    training, ended = forked
    told = training.told(ended["Ctrl-C"][0])
    assert (told["why"], told["steps"]) == ("the training ended after 5 iterations", 1)
    # Neither had a rank: the first trace without one was another training's.
    assert told["file"] == f"trace.pid{told['pid']}.json.gz"
    trace = training.trace(told["file"])
    assert len([e for e in trace if e["name"].startswith("Optimizer.step")]) == 1


def test_a_trace_that_cannot_be_written_costs_nothing_else(forked: Forked) -> None:
    training, ended = forked
    pid, _ = ended["cannot be written"]
    assert f".trace.{pid}.json" in training.told(pid)["why"]
    ends = [line for line in training.lines if (line["pid"], line["kind"]) == (pid, "end")]
    assert [line["steps"] for line in ends] == [10]
    assert not [name for name in training.files if name.endswith(f"{pid}.json.gz")]


@pytest.mark.slow
def test_a_request_that_cannot_be_read_costs_nothing_else(training: Training) -> None:
    done = training.start("train(10)", "active=four")
    assert done.returncode == 0, done.stderr
    assert "preparing to profile" in training.told()["why"]
    assert [line["steps"] for line in training.lines if line["kind"] == "end"] == [10]
