"""What is told of loaders: real trainings, each in a fork of one process that has imported PyTorch."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.support.probed import Told, needs_torch, stories

pytestmark = needs_torch

SETUP = """
import threading, time, queue
from collections import UserDict
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset
data = TensorDataset(torch.randn(20, 4), torch.randn(20, 1))
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train(x, y):
    optimizer.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    optimizer.step()
def ahead(loader):
    iterator = iter(loader)
    current = next(iterator)
    for following in iterator:
        yield current
        current = following
    yield current
class Slow(Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): time.sleep(0.005); return torch.ones(4) * i, torch.ones(1)
class Broken(Slow):
    def __getitem__(self, i): raise KeyError("theirs")
class Nested(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return next(iter(DataLoader(Slow(), batch_size=3)))
class Texts(IterableDataset):
    def __iter__(self): yield from ("a", "b", "c")
"""


class Counted(NamedTuple):
    """Batches for training, its samples, batches for evaluation and by other threads; None: absent."""

    data: int | None
    samples: int | None
    evaluated: int | None = None
    background: int | None = None


STORIES = {
    "plain": ("for x, y in DataLoader(data, batch_size=8): train(x, y)", Counted(3, 20)),
    "data that takes time": ("for x, y in DataLoader(Slow(), batch_size=4): train(x, y)", Counted(5, 20)),
    "forked workers": (
        "for _ in range(2):\n  for x, y in DataLoader(Slow(), batch_size=4, num_workers=2): train(x, y)",
        Counted(10, 40),
    ),
    "persistent workers": (
        "loader = DataLoader(data, batch_size=4, num_workers=1, persistent_workers=True, prefetch_factor=3)\n"
        "for _ in range(2):\n  for x, y in loader: train(x, y)",
        Counted(10, 40),
    ),
    "evaluation without gradients": (
        "for _ in range(2):\n  for x, y in DataLoader(data, batch_size=4): train(x, y)\n"
        "  with torch.no_grad():\n    for x, y in DataLoader(data, batch_size=10): net(x)",
        Counted(10, 40, 4),
    ),
    "evaluation in inference mode": (
        "for x, y in DataLoader(data, batch_size=4): train(x, y)\n"
        "with torch.inference_mode():\n  for x, y in DataLoader(data, batch_size=10): net(x)",
        Counted(5, 20, 2),
    ),
    "evaluation that turns gradients off for the model only": (
        "for _ in range(2):\n  for x, y in DataLoader(data, batch_size=4): train(x, y)\n"
        "  for x, y in DataLoader(data, batch_size=10):\n    with torch.no_grad(): net(x)",
        Counted(10, 40, 4),
    ),
    "evaluation first": (
        "for x, y in DataLoader(data, batch_size=10): net(x)\n"
        "for x, y in DataLoader(data, batch_size=4): train(x, y)",
        Counted(5, 20, 2),
    ),
    "evaluation in the middle, one batch ahead, two batches a step": (
        "other = DataLoader(data, batch_size=10)\n"
        "for _ in range(2):\n"
        "  for i, (x, y) in enumerate(ahead(DataLoader(data, batch_size=2))):\n"
        "    if i % 2: train(x, y)\n"
        "    if i == 5: [net(x) for x, y in other]",
        Counted(20, 40, 4),
    ),
    "one batch an epoch": (
        "for _ in range(5):\n  (batch,) = DataLoader(data, batch_size=20)\n  train(*batch)",
        Counted(5, 100),
    ),
    "two loaders at once": (
        "for (x, y), _ in zip(DataLoader(data, batch_size=4), DataLoader(data, batch_size=10)): train(x, y)",
        Counted(5, 12 + 20),
    ),
    "a loader inside a loader": (
        "for x, y in DataLoader(Nested(), batch_size=None): train(x, y)",
        Counted(4, 12),
    ),
    "fetched by another thread": (
        "batches = queue.Queue(2)\n"
        "def fetch():\n"
        "  for batch in DataLoader(data, batch_size=4): batches.put(batch)\n"
        "  batches.put(None)\n"
        "threading.Thread(target=fetch).start()\n"
        "while (batch := batches.get()) is not None: train(*batch)",
        Counted(None, 20, None, 5),
    ),
    "samples in tuples": (
        "for xs, ys in DataLoader(data, batch_size=3, collate_fn=lambda items: tuple(zip(*items))):\n"
        "  train(torch.stack(xs), torch.stack(ys))",
        Counted(7, 21),
    ),
    "a mapping, from a batch sampler": (
        "for batch in DataLoader(data, batch_sampler=BatchSampler(range(20), 8, False),\n"
        "    collate_fn=lambda items: UserDict(x=torch.stack([x for x, _ in items]))):\n"
        "  train(batch['x'], torch.ones(1))",
        Counted(3, 20),
    ),
    "batches that nobody can count": (
        "for _ in DataLoader(Texts(), batch_size=None): train(torch.ones(4), torch.ones(1))",
        Counted(3, None),
    ),
    "no loader": ("for _ in range(3): train(torch.ones(4), torch.ones(1))", Counted(None, None)),
    "a data set that fails": (
        "try: next(iter(DataLoader(Broken())))\nexcept KeyError as error: print(repr(error))\n"
        "for x, y in DataLoader(data, batch_size=4): train(x, y)",
        Counted(5, 20),
    ),
    "epochs that are cut short": (
        "loader = DataLoader(data, batch_size=4)\n"
        "for _ in range(5):\n"
        "  for i, (x, y) in enumerate(loader):\n"
        "    if i == 2: break\n"
        "    train(x, y)",
        # One more batch an epoch than there are steps.
        Counted(15, 60),
    ),
    "inference only": (
        "with torch.no_grad():\n  for x, y in DataLoader(data, batch_size=4): net(x)",
        Counted(None, None, 5),
    ),
    "spawned workers": (
        "for x, y in DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context='spawn'):\n"
        "  train(x, y)",
        Counted(5, 20),
    ),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    folder = tmp_path_factory.mktemp("loader")
    return stories(folder, {name: SETUP + code for name, (code, _) in STORIES.items()})


@pytest.mark.parametrize("name", STORIES)
def test_batches_are_counted_for_what_they_were_fetched(told: dict[str, Told], name: str) -> None:
    story = told[name]
    assert (story.status, story.of("off")) == (0, [])
    names = ("data_n", "samples_n", "eval_data_n", "background_data_n")
    assert Counted(*(story.counters.get(each) for each in names)) == STORIES[name][1]
    for kind in ("data", "eval_data", "background_data"):
        assert (f"{kind}_n" in story.counters) == (f"{kind}_s" in story.counters)


def test_only_the_process_that_trains_tells(told: dict[str, Told]) -> None:
    """No loader's worker, forked or spawned: `stories` finds no line of any other process."""
    assert [name for name, story in told.items() if len(story.of("start")) != 1] == []


def test_waiting_is_timed_where_the_process_that_trains_waits(told: dict[str, Told]) -> None:
    assert told["data that takes time"].counters["data_s"] >= 20 * 0.005
    assert told["a loader inside a loader"].counters["data_s"] >= 4 * 3 * 0.005
    # Two workers share the waiting; it happened all the same.
    assert told["forked workers"].counters["data_s"] > 0
    assert told["forked workers"].counters["loader_starts_n"] == 2
    assert "loader_first_s" in told["forked workers"].counters
    assert "loader_first_s" not in told["plain"].counters


def test_the_settings_of_loaders_are_told(told: dict[str, Told]) -> None:
    def loaders(name: str) -> list[dict[str, object]]:
        return list(told[name].facts["loaders"])

    assert loaders("persistent workers") == [
        {
            "workers": 1,
            "method": "fork",
            "batch_size": 4,
            "pin_memory": False,
            "persistent_workers": True,
            "prefetch_factor": 3,
            "training": True,
            "fetched": 10,
        }
    ]
    assert [entry["method"] for entry in loaders("spawned workers")] == ["spawn"]
    assert [
        (e["batch_size"], e["training"], e["fetched"]) for e in loaders("evaluation without gradients")
    ] == [
        (4, True, 10),
        (10, False, 4),
    ]
    assert told["evaluation without gradients"].facts["batch_size"] == 4
    assert "loaders" not in told["no loader"].facts


def test_what_a_data_set_raises_reaches_the_training(told: dict[str, Told]) -> None:
    assert told["a data set that fails"].out == "KeyError('theirs')\n"
