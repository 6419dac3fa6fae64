"""Forecasts levels of rivers from gauges, whose records lie on two disks."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from ddp import Batch, Device, options, train
from torch.utils.data import DataLoader, Dataset


class Gauges(Dataset[Batch]):
    """The records that one rank reads; a quarter of all is on the old disk."""

    def __init__(self, shards: str) -> None:
        self.old = dist.get_rank() == 2 if shards == "by_place" else None

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Batch:
        old = index % 4 == 0 if self.old is None else self.old
        time.sleep(0.012 if old else 0.001)
        row = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return row, row.mean(dim=0, keepdim=True)


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--shards", choices=["by_place", "mixed"], default="by_place")
    args = parser.parse_args()
    train(args, Device(0.02), lambda: DataLoader(Gauges(args.shards), args.batch_size))
