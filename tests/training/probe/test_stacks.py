"""Where threads of real programs are, by samples of their stacks."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.probed import Told, needs_torch, probed, stories
from tests.support.sampled import alone, of, part

from gpudebug.core.inside.stacks import read_stacks


@pytest.mark.parametrize("version", VERSIONS)
def test_a_thread_that_sleeps_waits_and_one_that_counts_runs(tmp_path: Path, version: str) -> None:
    code = """
def main():
    watch()
    before = threading.active_count(), sys.getswitchinterval()
    sampler.start()
    burn(0.3); doze(0.6)
    sampler.finish()
    print(before == (threading.active_count(), sys.getswitchinterval()), lost, gc.isenabled())
main()
"""
    told = alone(tmp_path, code, interpreter(version))
    assert (told.status, told.out, told.err) == (0, "True [] True\n", "")
    found = of(told)
    slept = part(found, r"time\.sleep")
    assert slept * found.seconds >= 0.2
    assert part(found, r"time\.sleep", state="waiting") >= 0.8 * slept
    # Half of the processor time that it burns: on a busy machine that takes longer, and it waits for a core.
    assert part(found, stack=r"train\.py:burn$", state="running") * found.seconds >= 0.15
    assert part(found, stack=r"/train\.py:main$", phase="other") >= 0.95
    (line,) = [line for line in told.lines if line["stacks"]]
    assert (line["kind"], line["of"], line["t0"]) == ("stacks", "training", 0.5)
    assert line["since"] <= line["t"]


def test_a_thread_that_has_ended_is_lost_and_nothing_is_seen_then(tmp_path: Path) -> None:
    code = """
def work():
    watch()
    doze(0.2)
thread = threading.Thread(target=work)
sampler.start(); thread.start(); thread.join()
time.sleep(0.3)
sampler.finish()
print(lost, sampler.target)
"""
    told = alone(tmp_path, code)
    assert (told.out, told.err) == ("[1] (0, 0, 0)\n", "")
    assert of(told).seconds < 0.3


def test_signals_go_to_the_training(tmp_path: Path) -> None:
    code = """
import signal
signal.signal(signal.SIGALRM, lambda *_: print("rang", threading.current_thread().name))
watch(); sampler.start()
signal.setitimer(signal.ITIMER_REAL, 0.1)
time.sleep(0.3)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.1)
print(signal.sigtimedwait([signal.SIGUSR1], 5).si_signo == signal.SIGUSR1)
sampler.finish()
"""
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, "rang MainThread\nTrue\n", "")


FOLDS = """
def walked(depth, then):
    return then() if depth == 0 else other(depth, then)
def other(depth, then):
    return walked(depth - 1, then)
def fold():
    phase, ids, at, line = frames.fold(stack_from(sys._getframe()))
    return [frames.known[key].name for key in ids], at, line, phase
"""


OPTIMIZERS = """
def of_torch(file, source):
    names = dict(globals())
    exec(compile(source, "/nowhere/torch/optim/" + file, "exec"), names)
    return names
adam = of_torch("adam.py", "def adam(): return frames.fold(stack_from(sys._getframe()))[0]")["adam"]
step = of_torch("adam.py", "def step(call): return call()")["step"]
wrapper = of_torch("optimizer.py", "def wrapper(call, *a): return call(*a)")["wrapper"]
"""


def test_what_a_step_calls_back_into_the_program_is_not_the_optimizers(tmp_path: Path) -> None:
    """Lightning makes each training step within the optimizer's, as its closure."""
    code = FOLDS + OPTIMIZERS + "print(wrapper(step, adam), wrapper(step, lambda: fold()[3]), wrapper(adam))"
    assert alone(tmp_path, code).out == "optimizer other optimizer\n"


def test_an_optimizer_of_the_programs_own_is_one(tmp_path: Path) -> None:
    code = FOLDS + OPTIMIZERS + "def mine(): return fold()[3]\nprint(wrapper(mine))"
    assert alone(tmp_path, code).out == "optimizer\n"


def test_a_deep_stack_keeps_its_ends(tmp_path: Path) -> None:
    code = (
        FOLDS + "names, at, line, _ = walked(60, fold); print(len(names), names[0], names[-1], at, line > 0)"
    )
    folder = tmp_path.name
    assert alone(tmp_path, code).out == f"45 {folder}/train.py:fold {folder}/train.py:<module> 0 True\n"


def test_a_call_of_itself_is_one_frame(tmp_path: Path) -> None:
    code = FOLDS + "def again(n): return again(n - 1) if n else fold()\nprint(len(again(30)[0]))"
    assert alone(tmp_path, code).out == "3\n"


def test_the_program_of_an_installed_package_is_its_own_code(tmp_path: Path) -> None:
    """A console script that only calls into the package is not the program."""
    site = tmp_path / "lib" / "site-packages"
    for name, text in {
        "tool": "import lib2\ndef main(then): return lib2.call(then)\n",
        "lib2": "def call(then): return then()\n",
    }.items():
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text(text)
    code = (
        FOLDS
        + f"""
sys.path.append({str(site)!r})
import tool
own = os.path.abspath(__file__)
frames._programs.add(os.path.dirname(own))
names, at, line, _ = tool.main(fold)
print(names[at], line)
"""
    )
    assert alone(tmp_path, code).out == "tool/__init__.py:main 2\n"


TRAINERS = """
import os
sys.path.insert(0, {site!r})
frames._torch = os.path.join({site!r}, "torch") + os.sep
import fits, looks
def take(frame):
    phase, ids, at, line = frames.fold(stack_from(frame))
    return frames.known[ids[at]].name, ids[at] in frames.packaged
looks.take = take
def learn(*phases): return [found for found in fits.learn(phases)]
def log(): return looks.look()
"""
PACKAGES = {
    "torch/__init__.py": "from torch._tensor import backward\nfrom torch.optim.sgd import step\n",
    "torch/_tensor.py": "def backward(then): return then()\n",
    "torch/optim/__init__.py": "",
    "torch/optim/sgd.py": "def step(then): return then()\n",
    "looks/__init__.py": "import sys\ndef look(): return take(sys._getframe())\n",
    "fits/__init__.py": "import looks, torch\ndef learn(phases): return list(map(train, phases))\n"
    "def train(name): return getattr(torch, name)(looks.look) if name else collect()\n"
    "def collect(): return looks.look()\n",
}


def test_the_framework_that_trains_below_a_line_is_looked_into(tmp_path: Path) -> None:
    """From when a backward and a step of an optimizer were seen there; other packages stay a line's own."""
    site = tmp_path / "lib" / "site-packages"
    for name, text in PACKAGES.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    code = TRAINERS.format(site=str(site)) + "print(*learn('', 'backward', 'step', ''), log(), sep='\\n')"
    done = alone(tmp_path, code)
    assert done.err == ""
    own, package = f"{tmp_path.name}/train.py", "fits/__init__.py"
    assert done.out.splitlines() == [
        f"('{own}:learn', False)",
        f"('{own}:learn', False)",
        f"('{package}:train', True)",
        f"('{package}:collect', True)",
        f"('{own}:log', False)",
    ]


def test_a_comprehension_is_its_functions_code(tmp_path: Path) -> None:
    squares = "def squares(): return [fold() for _ in range(1)][0]\n"
    code = FOLDS + squares + "print([n.split(':')[1] for n in squares()[0]])"
    names = alone(tmp_path, code).out
    assert "comp>" not in names
    assert "'squares'" in names


def test_nothing_runs_while_frames_of_another_thread_are_walked(tmp_path: Path) -> None:
    """Garbage that is collected there would let the other thread go on, and that crashes Python 3.11."""
    code = """
import linecache
from gpudebug_probe.threads import stack_of
met, collected, deepest, found, halt = [0], [0], [0], set(), []
class Loop:
    def __init__(self): self.me = self
    def __del__(self):
        within = sys._getframe(1)
        line = linecache.getline(within.f_code.co_filename, within.f_lineno)
        met[0] += get_ident() == looker.ident and "call()" in line
        collected[0] += 1
def deep(n): return deep(n - 1) + 1 if n else (time.sleep(0.0002), len([Loop() for _ in range(5)]))[1]
def look():
    for _ in range(300):
        time.sleep(0.0003)
        stack = stack_of(main, sampler._collects)
        # On a busy machine single looks miss the deep part: the depth is that of all looks.
        deepest[0] = max(deepest[0], len(stack))
        found.add(all(hasattr(frame, "f_code") for frame in stack))
    halt.append(1)
main, looker = get_ident(), threading.Thread(target=look)
gc.set_threshold(30, 1, 1)
looker.start()
while not halt: deep(60)
print(met[0], collected[0] > 100, found, deepest[0] > 60, len(stack_of(12345, True)), gc.isenabled())
"""
    done = alone(tmp_path, code)
    assert (done.status, done.out) == (0, "0 True {True} True 0 True\n"), done


def test_source_is_told_without_what_could_be_a_secret(tmp_path: Path) -> None:
    token = "hf_" + "a1b2" * 9
    (tmp_path / "code.py").write_text(f'\n    login("{token}", retries=3)  # once\n' + "x" * 500)
    places = [("code.py", 2), ("code.py", 3), ("code.py", 9), ("none", 1)]
    code = f"for place in {places}: print(frames.source(*place))"
    told = alone(tmp_path, code).out.splitlines()
    assert tuple(told) == ('login("...", retries=3)  # once', "x" * 120, "", "")


ODD_FILES = {
    "no name": ("", "None"),
    "no end": ("a\\0b.py", "''"),
    "half a character": ("half_\\ud800.py", "''"),
    "a folder of packages": ("/nowhere/lib/site-packages", "''"),
}


@pytest.mark.parametrize(("file", "owner"), ODD_FILES.values(), ids=ODD_FILES)
def test_code_is_known_whatever_its_file_is_called(tmp_path: Path, file: str, owner: str) -> None:
    code = (
        FOLDS
        + f"""
fold.__code__ = fold.__code__.replace(co_filename="{file}")
names, at, line, phase = fold()
entry = next(one for one in frames.known.values() if one.name == names[0])
print(repr(entry.owner), repr(frames.source(entry.file, 1)), phase)
sampler._add(frames.fold(stack_from(sys._getframe())), 1.0, 0.5)
sampler.finish()
"""
    )
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, f"{owner} '' other\n", "")
    assert told.of("stacks")


def test_a_pipe_is_not_read_for_its_source(tmp_path: Path) -> None:
    code = """
os.mkfifo("pipe")
ends = os.open("pipe", os.O_RDWR)
os.write(ends, b"1 + 1\\n2 + 2\\n")
print([frames.source(name, 1) for name in ("pipe", f"/dev/fd/{ends}", ".")], os.read(ends, 99))
os.mkfifo("empty")
print(repr(frames.source("empty", 1)))
"""
    told = alone(tmp_path, code)
    assert (told.status, told.err) == (0, "")
    assert told.out == "['', '', ''] b'1 + 1\\n2 + 2\\n'\n''\n"


def test_many_stacks_are_told_in_lines_that_are_read(tmp_path: Path) -> None:
    code = """
def doors(n):
    names = [f"door_{n}_{k}_" + "x" * 90 for k in range(30)]
    text = "".join(f"def {a}(t): return {b}(t)\\n" for a, b in zip(names, names[1:]))
    space = {names[-1]: lambda then: then()}
    exec(compile(text, f"/job/file_{n}.py", "exec"), space)
    return space[names[0]]
import gpudebug_probe.sampler as module
module.MOST_STACKS = 300
for n in range(320):
    sampler._add(doors(n)(lambda: frames.fold(stack_from(sys._getframe()))), 1.0 + (n == 7), 0.5)
sampler.finish()
print(len(sampler._seen))
"""
    told = alone(tmp_path, code)
    assert (told.status, told.err, told.out) == (0, "", "0\n")
    found = read_stacks("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in told.lines))
    assert found is not None
    (one,) = found.lines
    assert one.seconds == 321
    # What was too much is counted together, and what did not fit into the line is part of the sum alone.
    assert max(spent for spent, _ in one.places.values()) == 20
    assert 10 <= len(one.places) <= 100


def test_an_error_of_ours_ends_it_and_is_told(tmp_path: Path) -> None:
    told = alone(tmp_path, "watch()\nframes.fold = None\nsampler.start(); time.sleep(0.2)\nsampler.finish()")
    assert (told.status, told.err) == (0, "")
    (line,) = told.of("stacks")
    assert "TypeError" in line["why"]


def test_a_record_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    code = (
        "os.rmdir(os.environ['GPUDEBUG_RECORDS_DIR'])\nwatch(); sampler.start(); doze(0.1); sampler.finish()"
    )
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, "", "")


PROGRAM = """
import os, threading, time
class Stored(torch.utils.data.Dataset):
    def __init__(self, work, count=24): self.work, self.count = work, count
    def __len__(self): return self.count
    def __getitem__(self, index):
        self.work()
        return torch.ones(4)
def store():
    time.sleep(0.012)
def resize():
    end, n = time.thread_time() + 0.012, 0
    while time.thread_time() < end: n += sum(range(500))
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x):
        table(0.04)
        return self.layer(x)
def table(seconds):
    end, n = time.thread_time() + seconds, 0
    while time.thread_time() < end: n += sum(range(500))
def train(net, dataset, **loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(dataset, batch_size=4, **loader):
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
CODES = {
    "store and table": "train(Net(), Stored(store, 96))",
    "inference": """
net = Net()
with torch.no_grad():
    for _ in range(20):
        net(torch.ones(1, 4))
        store()
""",
    "no forward": "time.sleep(0.1)",
    "killed": """
net = Net()
train(net, Stored(store, 8))
os.kill(os.getpid(), 15)
""",
    "a fork that trains": """
train(Net(), Stored(store, 8))
pid = os.fork()
if pid: os.waitpid(pid, 0)
""",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    return stories(tmp_path_factory.mktemp("stacks"), {name: PROGRAM + code for name, code in CODES.items()})


@needs_torch
def test_a_slow_store_waits_and_a_loop_in_the_forward_runs(found: dict[str, Told]) -> None:
    told = found["store and table"]
    assert told.status == 0, told.out
    seen = of(told)
    waited = part(seen, stack="store$", phase="data", state="waiting")
    assert waited >= 0.15
    # On a busy machine a sample spans several calls, with the processor time of what ran between them.
    assert part(seen, stack="store$", state="running") <= 0.5 * waited
    assert part(seen, stack="Net.forward$", phase="forward", state="running") >= 0.25
    assert part(seen, stack="table$", phase="data") == 0
    assert not any("gpudebug_probe" in frame or "_call_impl" in frame for frame in seen.frames)


@needs_torch
def test_a_program_that_only_infers_is_seen(found: dict[str, Told]) -> None:
    told = found["inference"]
    assert (told.status, set(told.kinds)) == (0, {"stacks"})
    assert part(of(told), stack="table$", phase="forward", state="running") >= 0.4


@needs_torch
def test_nobody_is_seen_who_neither_trains_nor_infers(found: dict[str, Told]) -> None:
    assert (found["no forward"].status, found["no forward"].lines) == (0, [])


@needs_torch
def test_a_fork_of_the_training_is_not_seen_until_it_trains(found: dict[str, Told]) -> None:
    told = found["a fork that trains"]
    assert (told.status, {line["pid"] for line in told.of("stacks")}) == (0, {told.end["pid"]})


@needs_torch
def test_a_training_that_is_killed_ends_at_once(found: dict[str, Told]) -> None:
    told = found["killed"]
    assert (told.status, told.kinds[:2]) == (-signal.SIGTERM, ["start", "beat"])


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_are_seen_however_they_begin(tmp_path: Path, method: str) -> None:
    code = f"""
import torch
{PROGRAM}
if __name__ == "__main__":
    train(torch.nn.Linear(4, 1), Stored(resize, 64), num_workers=2, multiprocessing_context={method!r})
    print("done")
"""
    told = probed(tmp_path / "run", code)
    assert (told.status, told.out, told.err) == (0, "done\n", "")
    assert len({line["pid"] for line in told.of("stacks")}) == 3
    seen = of(told, "workers")
    assert part(seen, stack="resize$", state="running") >= 0.3
    # What the training did as it made them is not theirs.
    assert part(seen, stack="DataLoader|train$") == 0
    assert part(of(told), stack="Queue.get|connection", phase="data", state="waiting") >= 0.2


@needs_torch
@pytest.mark.slow
def test_a_program_goes_on_as_without_us(tmp_path: Path) -> None:
    """Threads that come and go, forks, a compiled net, warnings that are errors."""
    code = f"""
import torch, warnings
{PROGRAM}
warnings.simplefilter("error")
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
def serve():
    for _ in range(5): net(torch.ones(1, 4)); time.sleep(0.01)
for _ in range(3):
    thread = threading.Thread(target=serve); thread.start(); thread.join()
for _ in range(5):
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
compiled = torch.compile(net, backend="eager")
train(compiled, Stored(lambda: None, 40))
print(net.weight.sum().item().hex(), threading.active_count(), len(os.listdir("/proc/self/fd")))
"""
    plain, seen = (probed(tmp_path / name, code, probe=probe) for name, probe in (("a", False), ("b", True)))
    assert (plain.status, seen.status) == (0, 0), plain.err + seen.err
    assert (seen.out, seen.err) == (plain.out, plain.err)
    assert seen.of("stacks")


@needs_torch
def test_a_forward_in_evaluation_mode_without_gradients_is_one_of_evaluation(tmp_path: Path) -> None:
    code = """
import time, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 1)
    def forward(self, x, seconds=0.0):
        time.sleep(seconds)
        return self.one(x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(2, 4), 0.2).sum().backward()
    optimizer.step()
def quality():
    net.eval()
    with torch.no_grad():
        net(torch.ones(2, 4), 0.8)
    net.train()
def teacher():
    with torch.no_grad():
        net(torch.ones(2, 4), 0.4)
quality(); teacher()
"""
    told = probed(tmp_path / "run", code)
    assert (told.status, told.err) == (0, "")
    found = of(told)
    evaluated = part(found, stack=r"quality$", phase="eval")
    assert evaluated > 0.2
    assert part(found, stack=r"quality$", phase="forward") < 0.1 * evaluated
    assert part(found, stack=r"teacher$", phase="eval") == 0


@needs_torch
@pytest.mark.parametrize("change", ["train", "requires_grad_"])
def test_a_forward_in_evaluation_mode_with_gradients_is_one_of_evaluation_if_few_steps_have_it(
    tmp_path: Path, change: str
) -> None:
    code = """
import time, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 1)
    def forward(self, x, seconds=0.0):
        time.sleep(seconds)
        y = self.one(x)
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
net, frozen = Net(), Net()
frozen.CHANGE(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def x():
    return torch.ones(2, 4, requires_grad=True)
def train(steps, teacher):
    for _ in range(steps):
        loss = net(x(), 0.01).sum()
        if teacher:
            loss = loss + guided()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
def guided():
    return frozen(x(), 0.05).sum()
def forces():
    net.CHANGE(False)
    net(x(), 0.8)
    net.CHANGE(True)
began = time.perf_counter()
train(10, False)
middle = time.perf_counter()
forces()
again = time.perf_counter()
train(20, True)
print(time.perf_counter() - again + middle - began)
""".replace("CHANGE", change)
    told = probed(tmp_path / "run", code)
    assert (told.status, told.err) == (0, "")
    found = of(told)
    assert part(found, stack=r"forces$", phase="eval") > 5 * part(found, stack=r"forces$", phase="forward")
    assert part(found, stack=r"guided$", phase="forward") > 2 * part(found, stack=r"guided$", phase="eval")
    assert told.counters["forward_s"] < float(told.out)
