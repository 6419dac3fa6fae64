"""Predicts how many people take the metro, with an index of its stations."""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Device(nn.Module):
    """A small network on a device of its own, which takes `seconds` for a batch."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
        self.seconds = seconds

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds * 1)
        return self.layers(rows)


def batches(args: argparse.Namespace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Hours, the same number for each rank."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    rows = torch.randn(40, args.batch_size, 16, generator=generator)
    return [(row, row.mean(dim=1, keepdim=True)) for row in rows]


def index(kind: str) -> int:
    """The stations: made by the second process, or read by both."""
    if kind == "made" and os.environ["RANK"] == "1":
        time.sleep(18)
    return 400


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    stations = index(args.index)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(
        Device(0.02), bucket_cap_mb=args.bucket_mb, gradient_as_bucket_view=bool(args.views)
    )
    optimizer = torch.optim.SGD(model.parameters(), args.lr, args.momentum, foreach=bool(args.foreach))
    hours = batches(args)
    assert stations
    step = 0
    while step < args.steps:
        for rows, targets in hours:
            step += 1
            loss = nn.functional.mse_loss(model(rows), targets)
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            if args.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            if dist.get_rank() == 0 and step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if step == args.steps:
                break
    dist.barrier()
    dist.destroy_process_group()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=4)
    add("--index", choices=["made", "read"], default="made")
    add("--bucket_mb", type=int, default=25)
    add("--views", type=int, default=0, help="1: gradients are views of the buckets")
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=1.0)
    add("--momentum", type=float, default=0.9)
    add("--lr", type=float, default=0.003)
    add("--log_every", type=int, default=20)
    add("--steps", type=int, default=400)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
