"""Trains a dense network on a table of measurements that fits into memory."""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import nn

ROWS, COLUMNS, TARGETS = 16384, 128, 4


def make_table() -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and targets that a fixed random network makes of them, with noise."""
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(ROWS, COLUMNS, generator=generator)
    first = torch.randn(COLUMNS, 64, generator=generator) / COLUMNS**0.5
    second = torch.randn(64, TARGETS, generator=generator) / 8
    targets = torch.tanh(inputs @ first) @ second
    return inputs, targets + 0.1 * torch.randn(ROWS, TARGETS, generator=generator)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden + self.narrow(torch.relu(self.wide(self.norm(hidden))))


def make_model(width: int, depth: int) -> nn.Module:
    blocks = (Residual(width) for _ in range(depth))
    return nn.Sequential(nn.Linear(COLUMNS, width), *blocks, nn.Linear(width, TARGETS))


@torch.no_grad()
def validate(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    return float(nn.functional.mse_loss(model(inputs), targets))


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs, targets = make_table()
    if args.table_on_device:
        inputs, targets = inputs.to(device), targets.to(device)
    held_out = inputs[-256:].to(device), targets[-256:].to(device)
    model = make_model(args.width, args.depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, foreach=bool(args.foreach))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, args.decay_every, 0.9)
    end, step = math.inf, 0
    while step < args.steps and time.monotonic() < end:
        for rows in torch.randperm(ROWS - 256).split(args.batch_size):
            step += 1
            x, y = inputs[rows].to(device), targets[rows].to(device)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            if args.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            if args.schedule:
                scheduler.step()
            if step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if args.eval_every and step % args.eval_every == 0:
                print(f"held-out error after {step} steps: {validate(model, *held_out):.4f}", flush=True)
            if step == args.warmup_steps:
                end = time.monotonic() + args.duration
            if step == args.steps or time.monotonic() >= end:
                break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=256)
    add("--width", type=int, default=192)
    add("--depth", type=int, default=3)
    add("--table_on_device", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--schedule", type=int, default=1)
    add("--decay_every", type=int, default=50)
    add("--clip_norm", type=float, default=1.0)
    add("--eval_every", type=int, default=100)
    add("--lr", type=float, default=1e-4)
    add("--log_every", type=int, default=2)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
