"""How much of what the model is given reaches its parameters, known by construction."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.probed import Told, needs_torch, stories

pytestmark = needs_torch

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
CODES = {
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
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    found = stories(tmp_path_factory.mktemp("reached"), CODES)
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
    told: Mapping[str, Told], name: str, given: int, reached: int
) -> None:
    found = told[name].facts["input"]
    assert (found["given"], found["reached"]) == (given, reached) and found["looks"] >= 1
    # A forward that failed shows nothing.
    assert "input" not in told["reaches, with an error"].facts
