"""Predicts how long buses stop, on days that are short and long."""

from __future__ import annotations

import torch
import torch.distributed as dist
from ddp import Batch, Device, batches_of, options, train


def days(size: int) -> list[Batch]:
    """Days of any length: each rank has short and long ones, in an order of its own."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    return batches_of(torch.randint(10, 40, (40,), generator=generator).tolist(), size)


if __name__ == "__main__":
    args = options(__doc__).parse_args()
    train(args, Device(0.001, each=True), lambda: days(args.batch_size))
