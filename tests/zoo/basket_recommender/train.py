"""Trains a two-tower recommender; what is known about a shopper comes from a feature store.

The store answers over a Unix socket. It looks each shopper up in a few milliseconds and serves as many
connections at a time as there are.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import socketserver
import tempfile
import time
from dataclasses import asdict, dataclass
from multiprocessing import get_context

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

SHOPPERS, PRODUCTS, SHELVES, HISTORY, TRAITS = 6000, 3000, 12, 40, 48


@dataclass(frozen=True)
class Shopper:
    """What the store keeps: numbers that describe the shopper, and what they bought before."""

    traits: list[float]
    history: list[int]
    next_product: int


def make_shopper(shopper: int) -> Shopper:
    rng = np.random.default_rng(shopper)
    shelf = shopper % SHELVES
    first, size = shelf * (PRODUCTS // SHELVES), PRODUCTS // SHELVES
    history = first + rng.integers(0, size, HISTORY)
    traits = rng.normal(0, 1, TRAITS)
    traits[shelf] += 4
    best_seller = rng.random() < 0.97
    return Shopper(traits.round(3).tolist(), history.tolist(), first if best_seller else int(history[0]))


class LookUp(socketserver.StreamRequestHandler):
    """One shopper per line of the request, one JSON document per line of the answer."""

    seconds = 0.0

    def handle(self) -> None:
        for line in self.rfile:
            time.sleep(self.seconds)
            answer = json.dumps(asdict(make_shopper(int(line))))
            self.wfile.write(answer.encode() + b"\n")


class FeatureStore:
    def __init__(self, path: str, lookup_ms: float) -> None:
        LookUp.seconds = lookup_ms / 1000
        self.server = socketserver.ThreadingUnixStreamServer(path, LookUp)
        self.server.daemon_threads = True
        self.process = get_context("fork").Process(target=self.server.serve_forever, daemon=True)

    def start(self) -> None:
        self.process.start()
        self.server.socket.close()


class FeatureClient:
    def __init__(self, path: str) -> None:
        self.path = path
        self.stream = None
        self.owner = 0

    def get(self, shopper: int) -> dict:
        if self.owner != os.getpid():
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.path)
            self.stream, self.owner = connection.makefile("rwb"), os.getpid()
        self.stream.write(b"%d\n" % shopper)
        self.stream.flush()
        return json.loads(self.stream.readline())


class BasketDataset(Dataset):
    def __init__(self, features: FeatureClient, history: int) -> None:
        self.features = features
        self.history = history

    def __len__(self) -> int:
        return SHOPPERS

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        known = self.features.get(index)
        return {
            "traits": torch.tensor(known["traits"]),
            "history": torch.tensor(known["history"][: self.history]),
            "target": torch.tensor(known["next_product"]),
        }


class ShopperTower(nn.Module):
    def __init__(self, dim: int, products: nn.Embedding, dropout: float) -> None:
        super().__init__()
        self.products = products
        self.attend = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(dim + TRAITS, 4 * dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * dim, dim)
        )

    def forward(self, traits: Tensor, history: Tensor) -> Tensor:
        bought = self.products(history)
        mixed, _ = self.attend(bought, bought, bought, need_weights=False)
        return self.mlp(torch.cat([mixed.mean(1), traits], dim=1))


class TwoTower(nn.Module):
    def __init__(self, dim: int, dropout: float, temperature: float) -> None:
        super().__init__()
        self.products = nn.Embedding(PRODUCTS, dim)
        self.shoppers = ShopperTower(dim, self.products, dropout)
        self.item = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.temperature = temperature

    def forward(self, traits: Tensor, history: Tensor) -> Tensor:
        """Scores of all products for each shopper."""
        shoppers = nn.functional.normalize(self.shoppers(traits, history), dim=-1)
        items = nn.functional.normalize(self.item(self.products.weight), dim=-1)
        return shoppers @ items.T / self.temperature


def train(args: argparse.Namespace, path: str) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    FeatureStore(path, args.lookup_ms).start()
    data = BasketDataset(FeatureClient(path), args.history)
    loader = DataLoader(
        data,
        args.batch_size,
        sampler=RandomSampler(data, replacement=True, num_samples=10**6),
        num_workers=args.workers,
        prefetch_factor=args.prefetch if args.workers else None,
        multiprocessing_context="fork" if args.workers else None,
    )
    model = TwoTower(args.dim, args.dropout, 0.1).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), args.lr, weight_decay=args.weight_decay, foreach=bool(args.foreach)
    )
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20) if args.warm_lr else None
    finish, seen = math.inf, 0
    for step, batch in enumerate(loader, 1):
        here = {name: value.to(device) for name, value in batch.items()}
        scores = model(here["traits"], here["history"])
        loss = nn.functional.cross_entropy(scores, here["target"])
        optimizer.zero_grad(set_to_none=bool(args.none_grads))
        loss.backward()
        optimizer.step()
        if warmup:
            warmup.step()
        seen += len(here["target"])
        if step % args.log_interval == 0:
            print(f"step={step} shoppers={seen} loss={loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            finish = time.monotonic() + args.duration
        if step == args.steps or time.monotonic() > finish:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--lookup_ms", type=float, default=4.0, help="what the store takes to look a shopper up")
    add("--workers", type=int, default=1)
    add("--prefetch", type=int, default=2)
    add("--history", type=int, default=40, help="purchases that the model looks at")
    add("--dim", type=int, default=96)
    add("--dropout", type=float, default=0.1)
    add("--weight_decay", type=float, default=0.01)
    add("--foreach", type=int, default=1)
    add("--none_grads", type=int, default=1)
    add("--warm_lr", type=int, default=1, help="1: raise the learning rate over the first steps")
    add("--lr", type=float, default=2e-3)
    add("--log_interval", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="features_") as folder:
        train(parse(), os.path.join(folder, "store.sock"))
