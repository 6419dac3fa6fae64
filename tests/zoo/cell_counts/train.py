"""Counts cells on plates, which workers fetch from a store."""

from __future__ import annotations

import os
import time

import torch
from ddp import Batch, Device, options, train
from torch.utils.data import DataLoader, Dataset


class Plates(Dataset[Batch]):
    """Plates in a store that answers after a while."""

    def __len__(self) -> int:
        return 1600

    def __getitem__(self, index: int) -> Batch:
        time.sleep(0.015)
        row = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return row, row.mean(dim=0, keepdim=True)


def bind(places: str) -> int:
    """Take the cores that this rank is given, and return their number."""
    cores = sorted(os.sched_getaffinity(0))
    own = {"all": cores, "first_all": cores if os.environ["RANK"] == "0" else cores[:1]}[places]
    os.sched_setaffinity(0, own)
    return len(own)


def plates(cores: int, size: int) -> DataLoader[Batch]:
    return DataLoader(Plates(), size, num_workers=min(2, cores) ** 2, persistent_workers=True)


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--places", choices=["first_all", "all"], default="first_all")
    args = parser.parse_args()
    given = bind(args.places)
    train(args, Device(0.015), lambda: plates(given, args.batch_size))
