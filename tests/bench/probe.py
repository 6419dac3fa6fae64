"""What the probe costs a training: `python -m tests.bench.probe`; nothing without PyTorch.

Two trainings take turns, one with the probe and one without, each some dozens of short steps at a time. The
cost of a step is the difference of their medians of CPU time, as a share of a step of 10 ms; the goal is at
most 1 %. Another training goes through a million steps, and must not grow. The stack sampler is a thread of
its own: what it spends of a CPU beside a thread that waits deep in a stack is bound to 0.3 % of the time, and
how much slower it makes Python code that never waits is shown.
"""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import Row, print_table
from tests.support.probed import lines_of, variables

BOUND_PERCENT = 1.0
BOUND_MB = 1.0
BOUND_STACKS_PERCENT = 0.3
STEP_S = 0.010
ROUNDS = 30
STEPS = 150

# A net of 50 modules, two reads and two copies a step: more of each than in most trainings of 10 ms a step.
TRAINING = """
import sys, time, torch
torch.set_num_threads(1)
layers = [torch.nn.Linear(16, 16) if n % 6 == 0 else torch.nn.Identity() for n in range(48)]
net = torch.nn.Sequential(*layers)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(512, 16), torch.randn(512, 16))
loader = torch.utils.data.DataLoader(data, batch_size=8)
def batches():
    while True:
        yield from loader
batches = batches()
def step():
    x, y = (part.to("cpu") for part in next(batches))
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item() + float(norm)
"""

IN_TURN = """
for line in sys.stdin:
    took = []
    for _ in range(int(line)):
        began = time.thread_time()
        step()
        took.append(time.thread_time() - began)
    print(sorted(took)[len(took) // 2], flush=True)
"""

# The hooks are called as PyTorch calls them; a real step would take a minute for a tenth of them.
MILLION = """
import json, os
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
def steps(count):
    for number in range(count):
        if number % 1000 == 0:
            step()
        for hook in hooks.values():
            hook(optimizer, (), {})
steps(50000)
before = resident()
steps(1000000)
print(json.dumps(resident() - before))
"""

# Ten milliseconds at a time in a stack of 60 calls. The clock of the sampler's thread is the only one of the
# process that is neither this thread's nor counted before it began.
DEEP = """
import sys, time, os, json
def deep(depth, then):
    return then() if depth == 0 else deeper(depth, then)
def deeper(depth, then):
    return deep(depth - 1, then)
net = torch.nn.Linear(1, 1)
def wait():
    for _ in range(2000):
        time.sleep(0.010)
net(torch.ones(1))
before = time.process_time() - time.thread_time()
began = time.monotonic()
deep(30, wait)
print(json.dumps((time.process_time() - time.thread_time() - before) / (time.monotonic() - began)))
"""

BURN = """
import json
net = torch.nn.Linear(1, 1)
net(torch.ones(1))
def burn(rounds):
    n = 0
    for k in range(rounds):
        n += k & 3
for line in sys.stdin:
    began = time.thread_time()
    burn(int(line))
    print(time.thread_time() - began, flush=True)
"""
BURN_ROUNDS = 4_000_000


def _start(folder: Path, name: str, code: str, probe: bool) -> subprocess.Popen[str]:
    run = folder / name
    run.mkdir()
    program = folder / f"{name}.py"
    program.write_text(TRAINING + code)
    env = variables(run, GPUDEBUG_PROBE="1" if probe else "0")
    command = [sys.executable, str(program)]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(training: subprocess.Popen[str], steps: int) -> float:
    if training.stdin is None or training.stdout is None:
        raise SystemExit("a training without pipes")
    training.stdin.write(f"{steps}\n")
    training.stdin.flush()
    return float(training.stdout.readline())


def cost(folder: Path) -> tuple[float, float]:
    """CPU seconds that a step takes longer with the probe, and what it takes without."""
    seen, bare = _start(folder, "seen", IN_TURN, True), _start(folder, "bare", IN_TURN, False)
    try:
        for training in (seen, bare):
            _ask(training, STEPS)
        pairs = [(_ask(seen, STEPS), _ask(bare, STEPS)) for _ in range(ROUNDS)]
    finally:
        for training in (seen, bare):
            training.communicate()
    (end,) = (line for line in lines_of(folder / "seen") if line["kind"] == "end")
    if end["steps"] != (ROUNDS + 1) * STEPS or lines_of(folder / "bare"):
        raise SystemExit("the probe was not on where it should be, or not off")
    return statistics.median(s - b for s, b in pairs), statistics.median(b for _, b in pairs)


def growth(folder: Path) -> float:
    """MB that a process grows by over a million steps."""
    said, _ = _start(folder, "million", MILLION, True).communicate()
    return float(json.loads(said))


def stacks_beside(folder: Path) -> float:
    """The share of a CPU that the stack sampler takes while the thread that it looks at waits."""
    said, _ = _start(folder, "deep", DEEP, True).communicate()
    if not lines_of(folder / "deep"):
        raise SystemExit("nobody looked at the stacks")
    return float(json.loads(said))


def stacks_within(folder: Path) -> float:
    """By which share of its time the stack sampler slows Python code down that never waits, CPU time."""
    seen, bare = _start(folder, "burnt", BURN, True), _start(folder, "burning", BURN, False)
    try:
        pairs = [(_ask(seen, BURN_ROUNDS), _ask(bare, BURN_ROUNDS)) for _ in range(ROUNDS)]
    finally:
        for training in (seen, bare):
            training.communicate()
    return statistics.median(s / b for s, b in pairs) - 1


def rows() -> list[Row]:
    """Cost of a step, growth over a million, cost of looking at stacks."""
    if importlib.util.find_spec("torch") is None:
        return []
    with tempfile.TemporaryDirectory() as name:
        (seconds, _), grown = cost(Path(name)), growth(Path(name))
        beside, within = stacks_beside(Path(name)), stacks_within(Path(name))
    return [
        Row("probe, of a step of 10 ms", 100 * seconds / STEP_S, BOUND_PERCENT, "% CPU time"),
        Row("  its memory over a million steps", grown, BOUND_MB, "MB more"),
        Row("  its stack sampler, of a CPU, 60 calls deep", 100 * beside, BOUND_STACKS_PERCENT, "% CPU time"),
        Row("  and of Python code that never waits", 100 * within, math.inf, "% CPU time"),
    ]


if __name__ == "__main__":
    print_table(rows())
