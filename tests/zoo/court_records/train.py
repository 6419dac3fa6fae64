"""Scores court records, which are short and long."""

from __future__ import annotations

import torch
import torch.distributed as dist
from ddp import Batch, Device, batches_of, options, train


def records(deal: str, batch_size: int) -> list[Batch]:
    """The records of this rank: of lengths in order half of them each, or dealt out in turn."""
    lengths = sorted(torch.randint(8, 64, (80,), generator=torch.Generator().manual_seed(1)).tolist())
    ranks, rank = dist.get_world_size(), dist.get_rank()
    size = len(lengths) // ranks
    own = lengths[rank::ranks] if deal == "in_turn" else lengths[rank * size : (rank + 1) * size]
    return batches_of(own, batch_size)


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--deal", choices=["in_order", "in_turn"], default="in_order")
    args = parser.parse_args()
    train(args, Device(0.001, each=True), lambda: records(args.deal, args.batch_size))
