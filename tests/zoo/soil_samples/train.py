"""Tells what soil samples hold; both processes read their own."""

from __future__ import annotations

import time

import torch
from ddp import Batch, Device, options, train
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset[Batch]):
    """Samples, each read in a few milliseconds."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Batch:
        time.sleep(0.003)
        row = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return row, row.mean(dim=0, keepdim=True)


if __name__ == "__main__":
    args = options(__doc__).parse_args()
    train(args, Device(0.02), lambda: DataLoader(Samples(), args.batch_size))
