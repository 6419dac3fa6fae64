"""The loss that the probe reports: known by construction."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.probed import Told, needs_torch, stories

pytestmark = needs_torch

# The loss of iteration i is 100 - i, whatever the weights are: counted from 0.
TRAIN = """
import time
def train(backward, steps=14, optimizers=1):
    net = torch.nn.Linear(1, 1)
    made = [torch.optim.SGD(net.parameters(), lr=0.0) for _ in range(optimizers)]
    for i in range(steps):
        backward(net(torch.ones(1, 1)).sum() * 0 + 100.0 - i)
        for optimizer in made: optimizer.step()
        if i > 10: time.sleep(0.3)
"""
CODES = {
    "plain": "train(lambda loss: loss.backward())",
    "by autograd": "train(lambda loss: torch.autograd.backward((loss,)))",
    "gradients alone": "train(lambda loss: torch.autograd.grad(loss, loss))",
    "halved for two": """
def twice(loss):
    (loss / 2).backward(retain_graph=True)
    (loss / 2 + 7).backward()
train(twice)
""",
    "scaled": """
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
train(lambda loss: scaler.scale(loss).backward())
""",
    "scaled by hand": "train(lambda loss: (loss * 1024).backward())",
    "a vector": "train(lambda loss: loss.repeat(2).backward(torch.ones(2)))",
    "no number": "train(lambda loss: (loss + float('nan')).backward())",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    codes = {name: TRAIN + code for name, code in CODES.items()}
    return stories(tmp_path_factory.mktemp("losses"), codes)


@pytest.mark.parametrize(
    ("story", "first", "apart"),
    [
        ("plain", 99.0, 1.0),
        ("by autograd", 99.0, 1.0),
        ("gradients alone", None, None),
        ("halved for two", 49.5, 0.5),
        ("scaled", 99.0, 1.0),
        # Its factor may change from step to step.
        ("scaled by hand", None, None),
        ("a vector", None, None),
    ],
)
def test_the_loss_is_what_backward_was_called_on(
    told: Mapping[str, Told], story: str, first: float | None, apart: float | None
) -> None:
    found = told[story]
    assert (found.status, found.of("off")) == (0, []), found.out
    known = [tuple(one) for line in found.lines for one in line.get("losses", ())]
    if first is None or apart is None:
        assert known == []
        return
    assert len(known) >= 11
    assert known == [(step, pytest.approx(first - apart * (step - 2))) for step, _ in known]
    assert [step for step, _ in known[:11]] == list(range(2, 13))
    assert found.counters.get("reads_n", 0) == 0


def test_a_loss_that_is_no_number_is_reported_as_such(told: Mapping[str, Told]) -> None:
    known = [one for line in told["no number"].lines for one in line.get("losses", ())]
    assert known and all(value is None for _, value in known)
