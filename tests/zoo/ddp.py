"""What the programs of several ranks share: a network on a device of its own, its training, its options."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

Batch = tuple[torch.Tensor, torch.Tensor]


class Device(nn.Module):
    """A small network that takes `seconds` for a batch; with `each` for each of its places."""

    def __init__(self, seconds: float, *, each: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
        self.seconds = seconds
        self.each = each

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds * (rows.shape[1] if self.each else 1))
        return self.layers(rows.mean(dim=1) if self.each else rows)


def equal_batches(args: argparse.Namespace) -> list[Batch]:
    """Forty batches for each rank."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    rows = torch.randn(40, args.batch_size, 16, generator=generator)
    return [(row, row.mean(dim=1, keepdim=True)) for row in rows]


def batches_of(lengths: Iterable[int], size: int) -> list[Batch]:
    """A batch of each length."""
    rows = [torch.randn(size, length, 16) for length in lengths]
    return [(row, row.mean(dim=(1, 2))[:, None]) for row in rows]


def train(
    args: argparse.Namespace,
    network: Device,
    load: Callable[[], Iterable[Batch]],
    beside: Callable[[int, nn.Module, Iterable[Batch]], None] = lambda step, model, batches: None,
) -> None:
    """Train on what `load` returns once the ranks have met; rank 0 does something `beside` each step."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(
        network, bucket_cap_mb=args.bucket_mb, gradient_as_bucket_view=bool(args.views)
    )
    optimizer = torch.optim.SGD(model.parameters(), args.lr, args.momentum, foreach=bool(args.foreach))
    batches = load()
    step = 0
    while step < args.steps:
        for rows, targets in batches:
            step += 1
            loss = nn.functional.mse_loss(model(rows), targets)
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            if args.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            if dist.get_rank() == 0 and step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if dist.get_rank() == 0:
                beside(step, model.module, batches)
            if step == args.steps:
                break
    dist.barrier()
    dist.destroy_process_group()


def options(about: str | None) -> argparse.ArgumentParser:
    """The options of all of them."""
    parser = argparse.ArgumentParser(description=about, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=4)
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
    return parser
