"""One batch replayed: real trainings, each in a fork of one process that has imported PyTorch."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.support.probed import Told, needs_torch, stories

pytestmark = needs_torch

SETUP = """
import queue, threading
from collections import UserDict, namedtuple
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset
Pair = namedtuple("Pair", "x y")
class Numbers(Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): return torch.ones(4) * i, torch.ones(1)
class Named(Numbers):
    def __getitem__(self, i): return {"pair": Pair(torch.ones(4) * i, [torch.ones(1)]), "name": str(i)}
class Stream(IterableDataset):
    def __iter__(self):
        for i in range(20): yield torch.ones(4) * i, torch.ones(1)
class Short(Stream):
    def __iter__(self):
        for i in range(12): yield torch.ones(4) * i, torch.ones(1)
class Repeated(Sampler):
    def __init__(self): pass
    def __len__(self): return 4
    def __iter__(self):
        while True: yield from range(20)
class Broken(Numbers):
    def __getitem__(self, i):
        if i == 5: raise KeyError("theirs")
        return super().__getitem__(i)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
seen, counts = [], []
def train(x, y, step=True):
    seen.append(int(x[0, 0]))
    ((net(x) - y) ** 2).mean().backward()
    if step:
        optimizer.step()
        optimizer.zero_grad()
def fit(loader, epochs=3):
    for _ in range(epochs):
        counts.append(0)
        for x, y in loader:
            train(x, y)
            counts[-1] += 1
def end():
    print(*counts, "|", len(set(seen)))
"""


class Seen(NamedTuple):
    """Batches of each epoch, how many different ones the training saw, and those that were replayed."""

    counts: str
    different: int
    replayed: int


def story(code: str) -> str:
    return f"{SETUP}{code}\nend()"


# The variable says that the first loader's epochs have ten batches, and that seven were taken of the third's.
STORIES = {
    "plain": ("fit(DataLoader(Numbers(), batch_size=2))", Seen("10 10 10", 3, 27)),
    "workers": ("fit(DataLoader(Numbers(), batch_size=2, num_workers=2))", Seen("10 10 10", 3, 27)),
    "persistent workers": (
        "fit(DataLoader(Numbers(), batch_size=2, num_workers=2, persistent_workers=True))",
        Seen("10 10 10", 3, 27),
    ),
    "a loader of its own for each epoch": (
        "data = Numbers()\nfor _ in range(3): fit(DataLoader(data, batch_size=2), 1)",
        Seen("10 10 10", 3, 27),
    ),
    "epochs of other lengths": (
        "data = Numbers()\nfor n in 20, 8, 12: fit(DataLoader(data, batch_size=2, sampler=range(n)), 1)",
        Seen("10 4 6", 3, 17),
    ),
    "an epoch for each step": (
        "loader = DataLoader(Numbers(), batch_size=2)\nfor _ in range(8): train(*next(iter(loader)))",
        Seen("", 1, 5),
    ),
    "a stream whose length was told": ("fit(DataLoader(Stream(), batch_size=2))", Seen("10 10 10", 3, 27)),
    "a stream whose length shows in its first epoch": (
        "iter(DataLoader(Numbers()))\nfit(DataLoader(Short(), batch_size=2))",
        Seen("6 6 6", 6, 12),
    ),
    "a stream that nobody saw end": (
        "others = [DataLoader(Numbers()) for _ in range(2)]; _ = [iter(one) for one in others]\n"
        "fit(DataLoader(Stream(), batch_size=2), 2)",
        Seen("14 14", 3, 25),
    ),
    "a sampler that does not end": (
        "others = [DataLoader(Numbers()) for _ in range(2)]; _ = [iter(one) for one in others]\n"
        "batches = iter(DataLoader(Numbers(), batch_size=2, sampler=Repeated()))\n"
        "for _ in range(12): train(*next(batches))",
        Seen("", 3, 9),
    ),
    "a sampler that has more than it says": (
        "fit(DataLoader(Numbers(), batch_size=2, sampler=Repeated()), 1)",
        Seen("10", 3, 7),
    ),
    "batches that the training changes": (
        "loader = DataLoader(Numbers(), batch_size=2)\n"
        "for _ in range(3):\n"
        "  for x, y in loader:\n"
        "    assert y.shape == (2, 1)\n"
        "    x += 1; y.unsqueeze_(0)\n"
        "    train(x, y)",
        Seen("", 3, 27),
    ),
    "batches that get gradients": (
        "for x, y in DataLoader(Numbers(), batch_size=2):\n"
        "  assert x.grad is None; train(x.requires_grad_(), y); assert x.grad is not None",
        Seen("", 3, 7),
    ),
    "batches with a gradient to begin with": (
        "def leaf(items): x, y = zip(*items); return torch.stack(x).requires_grad_(), torch.stack(y)\n"
        "for x, y in DataLoader(Numbers(), batch_size=2, collate_fn=leaf):\n"
        "  assert x.is_leaf and x.requires_grad and x.grad is None; train(x, y)",
        Seen("", 3, 7),
    ),
    "tensors that carry something": (
        "def carry(items): x = torch.ones(2, 4); x.names_of = 'abc'; return x, torch.ones(2, 1)\n"
        "for x, y in DataLoader(Numbers(), batch_size=2, collate_fn=carry):\n"
        "  assert x.names_of == 'abc'; x += 1; train(x, y)",
        Seen("", 1, 7),
    ),
    "large tensors, and those alone, on the device": (
        "from gpudebug_probe.replay import KeptTensor\n"
        "for count, device in (20000, 'meta'), (200, 'meta'), (20000, 'cuda:63'):\n"
        "  kept = KeptTensor(torch.ones(count)); kept.place(device); counts.append(kept.give().device)\n"
        "fit(DataLoader(Numbers(), batch_size=2), 1)",
        Seen("meta cpu cpu 10", 3, 7),
    ),
    "mappings and named tuples, taken apart by the training": (
        "for _ in range(2):\n"
        "  for batch in DataLoader(Named(), batch_size=2):\n"
        "    pair = batch.pop('pair'); train(pair.x, pair.y.pop()); assert len(batch.pop('name')) == 2",
        Seen("", 3, 14),
    ),
    "a mapping of another class": (
        "for _ in range(2):\n"
        "  for batch in DataLoader(Numbers(), batch_size=2, collate_fn=lambda items: UserDict(x=items)):\n"
        "    x, y = batch.pop('x').pop(); train(x[None], y)",
        Seen("", 3, 14),
    ),
    "a last batch that is smaller": (
        "iter(DataLoader(Numbers()))\n"
        "loader = DataLoader(TensorDataset(torch.ones(20, 4), torch.ones(20, 1)), batch_size=8)\n"
        "for _ in range(3):\n  for x, y in loader: train(x, y); counts.append(len(x))",
        # Three batches as they come, the larger ones from then on.
        Seen("8 8 4 8 8 8 8 8 8", 1, 6),
    ),
    "batches that have a graph": (
        "scale = torch.nn.Parameter(torch.ones(1))\n"
        "def graph(items): x, y = zip(*items); return torch.stack(x) * scale, torch.stack(y)\n"
        "fit(DataLoader(Numbers(), batch_size=2, collate_fn=graph), 2)",
        Seen("10 10", 3, 17),
    ),
    "four batches a step": (
        "for i, (x, y) in enumerate(DataLoader(Numbers(), batch_size=2)): train(x, y, i % 4 == 3)",
        Seen("", 4, 6),
    ),
    "epochs that are cut short": (
        "loader = DataLoader(Numbers(), batch_size=2, num_workers=1, persistent_workers=True)\n"
        "for _ in range(3):\n"
        "  for i, (x, y) in enumerate(loader):\n    if i == 2: break\n    train(x, y)",
        # The third batch is fetched, and not trained on.
        Seen("", 2, 6),
    ),
    "evaluation, with gradients off and on": (
        "loader, other = DataLoader(Numbers(), batch_size=2), DataLoader(Numbers(), batch_size=1)\n"
        "for _ in range(3):\n"
        "  fit(loader, 1)\n"
        "  with torch.no_grad(): assert len({float(x[0, 0]) for x, y in other}) == 20\n"
        "  assert len({float(x[0, 0]) for x, y in other}) == 20\n"
        "  with torch.no_grad(): assert len({float(x[0, 0]) for x, y in loader}) == 10",
        Seen("10 10 10", 3, 27),
    ),
    "gradients that are turned off after an epoch began": (
        "loader = DataLoader(Numbers(), batch_size=2)\nfit(loader, 1)\n"
        "batches = iter(loader)\nwith torch.no_grad(): counts.append(len(list(batches)))\n"
        "counts.append(len(iter(loader)))",
        Seen("10 10 10", 3, 17),
    ),
    "two loaders at once": (
        "a, b = DataLoader(Numbers(), batch_size=2), DataLoader(Numbers(), batch_size=4)\n"
        "for _ in range(2):\n  counts.append(0)\n"
        "  for (x, y), (z, _) in zip(a, b): train(x + 0 * z[:2], y); counts[-1] += 1",
        Seen("5 5", 3, 16),
    ),
    "fetched by another thread": (
        "batches = queue.Queue(1)\n"
        "def fetch():\n"
        "  for _ in range(3):\n    for batch in DataLoader(data, batch_size=2): batches.put(batch)\n"
        "  batches.put(None)\n"
        "data = Numbers(); thread = threading.Thread(target=fetch); thread.start()\n"
        "while (batch := batches.get()) is not None: train(*batch); counts.append(1)\n"
        "thread.join(); counts[:] = [len(counts)]; seen[:] = [0]",
        Seen("30", 1, -1),
    ),
    "a data set that fails": (
        "try: fit(DataLoader(Broken(), batch_size=2))\nexcept KeyError: counts.append(-1)",
        # Its fifth sample is in the third batch.
        Seen("2 -1", 2, 0),
    ),
    "evaluation alone": (
        "with torch.no_grad(): counts.append(len([x for x, y in DataLoader(Numbers(), batch_size=2)]))",
        Seen("10", 0, 0),
    ),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    codes = {name: story(code) for name, (code, _) in STORIES.items()}
    return stories(tmp_path_factory.mktemp("replay"), codes, GPUDEBUG_LAYER="cached_batch:10,,7+")


@pytest.mark.parametrize("name", STORIES)
def test_the_training_sees_one_batch_and_epochs_keep_their_length(told: dict[str, Told], name: str) -> None:
    expected, found = STORIES[name][1], told[name]
    assert (found.status, found.of("off")) == (0, []), found.out
    counts, _, different = found.out.rpartition("|")
    replayed = found.facts.get("replay", {}).get("batches")
    known = replayed if expected.replayed >= 0 else -1
    assert Seen(counts.strip(), int(different), known) == expected
    assert expected.replayed >= 0 or replayed > 0


def test_what_a_loader_is_stays_told(told: dict[str, Told]) -> None:
    (loader,) = told["workers"].facts["loaders"]
    assert (loader["workers"], loader["batch_size"], loader["fetched"]) == (2, 2, 30)
    assert told["workers"].facts["epochs"] == [10]
    assert told["workers"].facts["epochs_ended"] == [True]
    assert told["two loaders at once"].facts["epochs"] == [6, 5]
    assert told["two loaders at once"].facts["epochs_ended"] == [False, True]
    assert told["a sampler that does not end"].facts["epochs"] == [0, 0, 12]
    assert told["epochs that are cut short"].facts["epochs_ended"] == [False]
    assert told["plain"].counters["samples_n"] == 60
