"""Where an iteration's time goes and in what state the training is, known by construction."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.probed import Told, needs_torch, stories

pytestmark = needs_torch

STEPS = 8
TRAIN = f"""
import time, threading
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        return x.clone()
    @staticmethod
    def backward(ctx, given):
        time.sleep(ctx.seconds)
        return given, None
class Net(torch.nn.Module):
    def __init__(self, forward=0.0, backward=0.0):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
        self.forward_s, self.backward_s = forward, backward
    def forward(self, x):
        time.sleep(self.forward_s)
        return Slow.apply(self.inner(x).sum(), self.backward_s)
class Sleepy(torch.optim.SGD):
    def step(self, closure=None):
        loss = super().step(closure)
        time.sleep(0.02)
        return loss
def train(net, step=None, steps={STEPS}, make=torch.optim.SGD):
    optimizer = make(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        if step: step(net, optimizer)
        else:
            net(torch.ones(3, 2)).backward()
            optimizer.step()
"""
CODES = {
    "forward": "train(Net(forward=0.02))",
    "backward": "train(Net(backward=0.02))",
    "optimizer": "train(Net(), make=Sleepy)",
    "acting": """
def step(net, optimizer):
    with torch.no_grad():
        for rows in (1, 1, 2, 40): net(torch.ones(rows, 2))
    net(torch.ones(32, 2)).backward()
    optimizer.step()
train(Net(), step)
""",
    "metrics": """
def step(net, optimizer):
    net(torch.ones(32, 2)).backward()
    optimizer.step()
    with torch.no_grad():
        for batch in torch.utils.data.DataLoader(torch.ones(64, 2), batch_size=32):
            for rows in (1, 2): net(batch[:rows])
train(Net(), step)
""",
    "closure": """
def step(net, optimizer):
    def closure():
        loss = net(torch.ones(3, 2))
        loss.backward()
        time.sleep(0.02)
        return loss
    losses.append(optimizer.step(closure) if len(losses) % 2 else optimizer.step(closure=closure))
losses = []
train(Net(forward=0.01, backward=0.01), step, make=Sleepy)
assert all(isinstance(loss, torch.Tensor) for loss in losses)
""",
    "fed twice": """
class Fed(Net):
    def forward(self, batch, mask=None):
        return super().forward(batch["x"][:, :2])
def step(net, optimizer):
    batch = {"y": torch.ones(3), "x": torch.ones(3, 20), "of": ["no", "tensor"]}
    net(batch=batch, mask=None)
    loss = net(batch)
    torch.nn.L1Loss()(loss, torch.zeros(())).backward()
    optimizer.step()
train(Fed(), step)
""",
    "lbfgs": """
def step(net, optimizer):
    def closure():
        loss = net(torch.ones(3, 2))
        loss.backward()
        return loss
    print(optimizer.step(closure).item().hex())
torch.manual_seed(0)
train(Net(), step, make=torch.optim.LBFGS)
""",
    "evaluation": """
def step(net, optimizer):
    with torch.no_grad():
        net.forward_s = 0.02
        net(torch.ones(3, 2))
        net.forward_s = 0.0
    net(torch.ones(3, 2)).backward()
    optimizer.step()
train(Net(), step)
""",
    "accumulated": """
def step(net, optimizer):
    for _ in range(4): net(torch.ones(3, 2)).backward()
    optimizer.step()
train(Net(), step)
""",
    "penalty": """
def step(net, optimizer):
    x = torch.ones(3, 2, requires_grad=True)
    torch.autograd.grad(net(x), x, create_graph=True)
    net(x).backward()
    optimizer.step()
train(Net(backward=0.01), step)
""",
    "errors": """
class Boom(torch.nn.Module):
    def forward(self, x): raise ValueError("boom")
class Unhappy(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x.clone())
    @staticmethod
    def backward(ctx, given): raise KeyError("bang")
def step(net, optimizer):
    for wrong in (lambda: Boom()(1), lambda: Unhappy.apply(net(torch.ones(3, 2))).backward()):
        try: wrong()
        except Exception as error: print(type(error).__name__)
    net(torch.ones(3, 2)).backward()
    optimizer.step()
train(Net(forward=0.01), step)
""",
    "other thread": """
net, other, done = Net(), Net(forward=0.02), threading.Event()
def run():
    while not done.is_set(): other(torch.ones(3, 2)).backward()
thread = threading.Thread(target=run)
def step(net, optimizer):
    if not thread.ident: thread.start()
    net(torch.ones(3, 2)).backward()
    optimizer.step()
    time.sleep(0.01)
train(net, step)
done.set()
thread.join()
""",
    "plain": "torch.set_num_threads(1); train(Net(), steps=2)",
    "mixed": """
def step(net, optimizer):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.ones(3, 2))
    loss.backward()
    optimizer.step()
train(Net(), step)
""",
    "mixed inside": """
class Casting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.net(x)
train(Casting())
""",
    "scaled": """
scaler = torch.amp.GradScaler("cpu")
def step(net, optimizer):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = net(torch.ones(3, 2))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
train(Net(), step)
""",
    "half": "train(Net().to(torch.bfloat16), lambda n, o: o.step(), steps=2)",
    "switched": """
torch.backends.cudnn.benchmark = True
torch.use_deterministic_algorithms(True)
torch.set_float32_matmul_precision("high")
torch.autograd.set_detect_anomaly(True)
train(Net(), steps=2)
""",
    "together": """
import os
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
train(Net(), steps=2)
torch.distributed.destroy_process_group()
""",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    found = stories(tmp_path_factory.mktemp("phases"), {name: TRAIN + code for name, code in CODES.items()})
    for name, one in found.items():
        assert ("Traceback" in one.out, one.of("off")) == (False, []), (name, one.out)
    return found


# What is asleep takes at least as long as it says; the rest of so small an iteration takes far less.
@pytest.mark.parametrize("name", ["forward", "backward", "optimizer"])
def test_each_phase_has_its_own_time(told: Mapping[str, Told], name: str) -> None:
    counters = told[name].counters
    asleep = counters[f"{name}_s"]
    # The first iteration's forward and backward come before the first sign of training.
    assert asleep >= 0.02 * (STEPS - 1)
    others = [counters[f"{other}_s"] for other in ("forward", "backward", "optimizer") if other != name]
    assert sum(others) < asleep


def test_a_closure_is_no_time_of_the_optimizers(told: Mapping[str, Told]) -> None:
    counters = told["closure"].counters
    assert counters["forward_s"] >= 0.01 * STEPS and counters["backward_s"] >= 0.01 * STEPS
    assert 0.02 * STEPS <= counters["optimizer_s"] < 0.035 * STEPS


def test_an_optimizer_that_computes_by_itself_is_the_same(told: Mapping[str, Told]) -> None:
    found = told["lbfgs"]
    assert (len(found.out.splitlines()), found.end["steps"]) == (STEPS, STEPS)
    assert found.facts["backwards_per_step"] >= 1


def test_a_forward_without_gradients_is_no_training(told: Mapping[str, Told]) -> None:
    assert told["evaluation"].counters["forward_s"] < 0.01 * STEPS


def test_backwards_of_an_iteration_are_counted(told: Mapping[str, Told]) -> None:
    assert told["accumulated"].facts["backwards_per_step"] == 4
    assert told["forward"].facts["backwards_per_step"] == 1
    # `torch.autograd.grad` takes the backward's time but accumulates nothing.
    assert told["penalty"].facts["backwards_per_step"] == 1
    assert told["penalty"].counters["backward_s"] >= 0.02 * (STEPS - 1)


def test_what_a_backward_takes_in_is_counted(told: Mapping[str, Told]) -> None:
    for name in ("forward", "accumulated", "evaluation", "closure"):
        counters = told[name].counters
        # As many of them as backward passes: neither evaluation nor what is inside a module counts.
        assert counters["inputs_n"] == 6 * counters["backward_n"], name
    counters = told["fed twice"].counters
    # The first forward of each backward, its largest tensor, wherever it is in the arguments.
    assert counters["inputs_n"] == 60 * counters["backward_n"]


def test_forwards_of_few_rows_without_gradients_are_those_that_act(told: Mapping[str, Told]) -> None:
    counters = told["acting"].counters
    # What the first iterations do comes before the training's rows are known.
    assert (counters["acts_n"], counters["acts_rows_n"]) == (3 * (STEPS - 2), 4 * (STEPS - 2))
    assert counters["acts_s"] > 0 and counters["rows_n"] == 32 * counters["backward_n"]
    assert "acts_n" not in told["forward"].counters
    # A metric that is given a part of an evaluation's batch is no policy.
    assert told["metrics"].counters["eval_data_n"] > 0 and "acts_n" not in told["metrics"].counters


def test_errors_end_a_phase(told: Mapping[str, Told]) -> None:
    found = told["errors"]
    assert found.out.splitlines() == ["ValueError", "KeyError"] * STEPS
    assert found.counters["forward_s"] >= 0.02 * (STEPS - 1)


def test_another_thread_that_does_not_step_takes_no_time(told: Mapping[str, Told]) -> None:
    assert told["other thread"].counters["forward_s"] < 0.01 * STEPS


def test_a_plain_training_is_described(told: Mapping[str, Told]) -> None:
    facts = told["plain"].facts
    known = {"device": "cpu", "parameter_dtype": "float32", "phases": "host", "amp": {"enabled": False}}
    known |= {"compile": None, "distributed": None, "cudnn_benchmark": False, "deterministic": False}
    known |= {"matmul_precision": "highest", "anomaly": False, "threads": 1, "launch_blocking": False}
    assert {name: facts[name] for name in known} == known
    assert facts["interop_threads"] >= 1
    assert "peak_device_mb" not in facts and "alloc_retries" not in told["plain"].counters


@pytest.mark.parametrize("name", ["mixed", "mixed inside"])
def test_mixed_precision_is_seen_around_and_inside_the_model(told: Mapping[str, Told], name: str) -> None:
    assert told[name].facts["amp"] == {"enabled": True, "dtype": "bfloat16"}


def test_a_gradient_scaler_is_seen(told: Mapping[str, Told]) -> None:
    assert told["scaled"].facts["amp"] == {"enabled": True, "dtype": "float16", "grad_scaler": True}


def test_parameters_of_another_type_are_seen(told: Mapping[str, Told]) -> None:
    assert told["half"].facts["parameter_dtype"] == "bfloat16"


def test_switches_are_seen(told: Mapping[str, Told]) -> None:
    facts = told["switched"].facts
    assert facts["cudnn_benchmark"] and facts["deterministic"] and facts["anomaly"]
    assert facts["matmul_precision"] == "high"


def test_a_process_group_is_seen(told: Mapping[str, Told]) -> None:
    assert told["together"].facts["distributed"] == {"backend": "gloo", "world_size": 1}


REACHES = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    def forward(self, x):
        return self.inner(x).sum()
def train(net, step):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(8): step(net, optimizer)
class Policy(torch.nn.Module):
    def __init__(self, scale=False):
        super().__init__()
        self.net, self.plain = Net(), torch.nn.Flatten()
        if scale: self.scale = torch.nn.Parameter(torch.ones(()))
    def forward(self, batch):
        last = self.plain(batch["frames"][:, -1])
        return self.net(last) + self.net(last[:1])
class Weighted(Policy):
    def forward(self, batch):
        return (batch["frames"] * self.scale).sum()
def step(net, optimizer):
    net({"frames": torch.ones(3, 5, 2), "action": torch.ones(7)}).backward()
    optimizer.step()
"""
REACHING = {
    "reaches": REACHES + "train(Policy(), step)",
    "reaches inside": REACHES + "train(Policy(scale=True), step)",
    "reaches itself": REACHES + "train(Weighted(scale=True), step)",
    "reaches, compiled": REACHES + "train(torch.compile(Policy(), backend='eager'), step)",
    "reaches, with an error": REACHES
    + """
def failing(net, optimizer):
    try: net({"frames": torch.ones(3)})
    except IndexError: pass
    step(net, optimizer)
train(Policy(), failing)
""",
}


@pytest.fixture(scope="module")
def reaching(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    found = stories(tmp_path_factory.mktemp("reached"), REACHING)
    for name, one in found.items():
        assert ("Traceback" in one.out, one.of("off")) == (False, []), (name, one.out)
    return found


@pytest.mark.parametrize(
    ("name", "given", "reached"),
    [
        # The last frame of each, and the first of them once more.
        ("reaches", 37, 8),
        # A module whose weights meet nothing but what those inside of it read.
        ("reaches inside", 37, 8),
        ("reaches itself", 37, 37),
        # Nothing is known of what compiled code does.
        ("reaches, compiled", 37, 0),
    ],
)
def test_what_reaches_a_parameter_is_looked_at(
    reaching: Mapping[str, Told], name: str, given: int, reached: int
) -> None:
    found = reaching[name].facts["input"]
    assert (found["given"], found["reached"]) == (given, reached) and found["looks"] >= 1
    assert found["model"]
    # A forward that failed shows nothing.
    assert "input" not in reaching["reaches, with an error"].facts
