"""What is told of optimizers: real trainings, each in a fork of one process that has imported PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.probed import PROBE, Told, needs_torch, probed, stories

pytestmark = needs_torch

SETUP = """
import gc, weakref
x, y = torch.randn(8, 4), torch.randn(8, 1)
def make(kind=torch.optim.SGD, **options):
    net = torch.nn.Linear(4, 1)
    return net, kind(net.parameters(), **{"lr": 0.1, **options})
def loss_of(net, optimizer):
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    return loss
def step(net, optimizer):
    loss_of(net, optimizer)
    optimizer.step()
"""
MADE = "a, b = make(), make(torch.optim.Adam)\n"

# The code, iterations, steps of each optimizer.
STORIES = {
    "one": ("for _ in range(10): step(*a)", 10, [10]),
    "a critic that steps five times as often": (
        "for _ in range(10):\n  step(*a)\n  for _ in range(5): step(*b)",
        50,
        [10, 50],
    ),
    "two that step equally often": ("for _ in range(10): step(*a), step(*b)", 10, [10, 10]),
    "a policy that steps half as often": (
        "for i in range(10):\n  step(*a)\n  if i % 2: step(*b)",
        10,
        [10, 5],
    ),
    # The optimizer of the fold before is gone.
    "folds": ("for _ in range(3):\n  c = make()\n  for _ in range(10): step(*c)", 30, [10, 10, 10]),
    # The one before is still there: each that follows leads from its second step.
    "phases": ("for c in (make(), make(), make()):\n  for _ in range(10): step(*c)", 28, [10, 10, 10]),
    "accumulated": ("for i in range(20): loss_of(*a); i % 4 or a[1].step()", 5, [5]),
    "a class that calls super().step()": (
        "class Mine(torch.optim.SGD):\n"
        "  @torch.no_grad()\n"
        "  def step(self, closure=None): return super().step(closure)\n"
        "c = make(Mine)\n"
        "for _ in range(10): step(*c)",
        10,
        [10],
    ),
    "an optimizer around another": (
        "class Around(torch.optim.Optimizer):\n"
        "  def __init__(self, inner):\n"
        "    self.inner = inner\n"
        "    super().__init__(inner.param_groups, {})\n"
        "  def step(self, closure=None): self.inner.step(closure)\n"
        "around = Around(a[1])\n"
        "for _ in range(10): step(a[0], around)",
        10,
        [10, 10],
    ),
    "a closure": (
        "net, optimizer = make(torch.optim.LBFGS, max_iter=5)\n"
        "for _ in range(4): optimizer.step(lambda: loss_of(net, optimizer))",
        4,
        [4],
    ),
    "a schedule": (
        "schedule = torch.optim.lr_scheduler.StepLR(a[1], 3)\nfor _ in range(10): step(*a), schedule.step()",
        10,
        [10],
    ),
    "a scaler that skips two steps": (
        "net, optimizer = a\n"
        "scaler = torch.amp.GradScaler('cpu', init_scale=1.0)\n"
        "for i in range(10):\n"
        "  optimizer.zero_grad()\n"
        "  loss = ((net(x) - y) ** 2).mean() * (float('inf') if i in (3, 4) else 1)\n"
        "  scaler.scale(loss).backward()\n"
        "  scaler.step(optimizer), scaler.update()",
        8,
        [8],
    ),
    "an optimizer a parameter": (
        "net = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(50)])\n"
        "each = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}\n"
        "for p in each: p.register_post_accumulate_grad_hook(lambda p: each[p].step())\n"
        "for _ in range(5): net(x).sum().backward()",
        5,
        [5] * 64,
    ),
    "none of two hundred is kept": (
        "refs = []\n"
        "for _ in range(200):\n  c = make()\n  step(*c)\n  refs.append(weakref.ref(c[1]))\n"
        "del c\n"
        "gc.collect()\n"
        "print(sum(ref() is not None for ref in refs))",
        200,
        [1] * 64,
    ),
    "a step that fails": (
        "class Broken(torch.optim.SGD):\n"
        "  def step(self, closure=None): raise KeyError('theirs')\n"
        "try: step(*make(Broken))\nexcept KeyError as error: print(repr(error))\n"
        "for _ in range(3): step(*a)",
        3,
        [3],
    ),
}
# Nobody has made an optimizer by then.
BY_HAND = {
    "weights that the program moves itself": ("for _ in range(10): move(*make_by_hand())", 10, []),
    "gradients that nobody accumulates": (
        "net = make_by_hand()[0]\n"
        "for _ in range(10): torch.autograd.grad(net(x).sum(), net.weight), move(net)",
        10,
        [],
    ),
    "an optimizer once it is made": (
        "for _ in range(5): move(*make_by_hand())\nc = make()\nfor _ in range(10): step(*c), loss_of(*c)",
        15,
        [10],
    ),
}
MOVE = """
def make_by_hand(): return (torch.nn.Linear(4, 1),)
def move(net):
    ((net(x) - y) ** 2).mean().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
"""
PRINTED = {"none of two hundred is kept": "0\n", "a step that fails": "KeyError('theirs')\n"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    folder = tmp_path_factory.mktemp("steps")
    codes = {name: SETUP + MADE + code for name, (code, _, _) in STORIES.items()}
    return stories(folder, codes | {name: SETUP + MOVE + code for name, (code, _, _) in BY_HAND.items()})


@pytest.mark.parametrize("name", [*STORIES, *BY_HAND])
def test_an_iteration_is_a_step_of_the_optimizer_that_steps_most_often(
    told: dict[str, Told], name: str
) -> None:
    story = told[name]
    assert (story.status, story.of("off"), story.out) == (0, [], PRINTED.get(name, ""))
    _, iterations, steps = (STORIES | BY_HAND)[name]
    assert story.end["steps"] == iterations
    assert story.end["opt"] == {str(index): count for index, count in enumerate(steps)}
    # Each iteration but the first has a time.
    assert sum(sum(line["hist"].values()) for line in story.of("beat") + story.of("end")) == iterations - 1


def test_optimizers_are_told_by_name(told: dict[str, Told]) -> None:
    assert told["two that step equally often"].facts["optimizers"] == [
        {"index": 0, "name": "SGD", "steps": 10, "weights": 5},
        {"index": 1, "name": "Adam", "steps": 10, "weights": 5},
    ]


OLD = f"""
import sys, torch
module = sys.modules["torch.optim.optimizer"]
del module.register_optimizer_step_post_hook
sys.path.append({str(PROBE)!r})
from gpudebug_probe import recorder, steps
recorder = recorder.Recorder("/no/such/folder", torch)
recorder.off = lambda why: None
steps.install(torch, recorder)
"""
LAST = "print(list(recorder.optimizers.values()))"
OLDER = (
    "one",
    "a critic that steps five times as often",
    "a class that calls super().step()",
    "a closure",
    "a schedule",
    "a step that fails",
)


@pytest.mark.slow
def test_a_pytorch_without_hooks_is_wrapped_class_by_class(tmp_path: Path) -> None:
    """As before 2.0; all of it in one process, whose optimizers are counted together."""
    codes = "".join(STORIES[name][0] + "\n" + MADE for name in OLDER)
    told = probed(
        tmp_path / "run",
        OLD + SETUP + MADE + codes + "print(list(recorder.optimizers.values()))",
        probe=False,
    )
    expected = [steps for name in OLDER for steps in STORIES[name][2]]
    assert (told.status, told.out.splitlines()[-1]) == (0, str(expected)), told.err
