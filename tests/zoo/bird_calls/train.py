"""Tells how loud birds call, and measures itself on held-out recordings."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from ddp import Batch, Device, equal_batches, options, train
from torch import nn


@torch.no_grad()
def measure(model: nn.Module, held_out: list[Batch]) -> float:
    model.eval()
    errors = [float(nn.functional.mse_loss(model(rows), targets)) for rows, targets in held_out[:8]]
    model.train()
    return sum(errors) / len(errors)


def report(step: int, model: nn.Module, calls: Iterable[Batch]) -> None:
    if step % args.measure_every == 0:
        print(f"held out after {step} steps: {measure(model, list(calls)):.4f}", flush=True)


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--measure_every", type=int, default=5)
    args = parser.parse_args()
    train(args, Device(0.02), lambda: equal_batches(args), report)
