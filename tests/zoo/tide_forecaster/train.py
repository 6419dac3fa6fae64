"""Trains a forecaster of water levels in a harbour: a day ahead from three days, with its uncertainty."""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import Tensor, nn

HOURS, PAST, AHEAD = 20000, 72, 24
QUANTILES = (0.1, 0.5, 0.9)
PERIODS = (12.42, 12.0, 25.82, 23.93)
"""The largest constituents of the tide, in hours."""


def measured_levels(seed: int) -> Tensor:
    """Tides and weather over HOURS hours, shape (HOURS,)."""
    generator = torch.Generator().manual_seed(seed)
    hours = torch.arange(HOURS)
    tide = sum(torch.cos(2 * math.pi * hours / period) / (1 + i) for i, period in enumerate(PERIODS))
    gusts = torch.randn(1, 1, HOURS + 47, generator=generator)
    surge = nn.functional.conv1d(gusts, torch.hann_window(48).view(1, 1, -1) / 12)
    return tide + surge.view(-1)[:HOURS]


class GatedResidual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)

    def forward(self, hidden: Tensor) -> Tensor:
        value, gate = self.outer(nn.functional.elu(self.inner(hidden))).chunk(2, dim=-1)
        return self.norm(hidden + value * torch.sigmoid(gate))


class Block(nn.Module):
    """Explains a part of the past, and hands on what it could not explain."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.enter = nn.Linear(PAST, width)
        self.layers = nn.Sequential(*(GatedResidual(width) for _ in range(depth)))
        self.backcast = nn.Linear(width, PAST)
        self.forecast = nn.Linear(width, AHEAD * len(QUANTILES))

    def forward(self, past: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.layers(torch.relu(self.enter(past)))
        return past - self.backcast(hidden), self.forecast(hidden)


class Forecaster(nn.Module):
    def __init__(self, blocks: int, width: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, depth) for _ in range(blocks))

    def forward(self, past: Tensor) -> Tensor:
        mean, spread = past.mean(dim=1, keepdim=True), past.std(dim=1, keepdim=True) + 1e-3
        rest, total = (past - mean) / spread, torch.zeros((), device=past.device)
        for block in self.blocks:
            rest, part = block(rest)
            total = total + part
        return (total * spread + mean).view(len(past), AHEAD, len(QUANTILES))


def pinball(forecast: Tensor, levels: Tensor) -> Tensor:
    loss = torch.zeros((), device=levels.device)
    for i, quantile in enumerate(QUANTILES):
        error = levels - forecast[..., i]
        loss = loss + torch.maximum(quantile * error, (quantile - 1) * error).mean()
    return loss / len(QUANTILES)


def run(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(bool(args.detect_anomaly))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    windows = measured_levels(args.seed).unfold(0, PAST + AHEAD, 1)
    model = Forecaster(args.blocks, args.width, args.depth).to(device)
    optimizer = torch.optim.RAdam(model.parameters(), args.lr, foreach=bool(args.foreach))
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2000)
    best, stop = math.inf, math.inf
    for step in range(1, args.steps + 1):
        sample = windows[torch.randint(0, len(windows), (args.batch_size,))].to(device)
        past, levels = sample[:, :PAST], sample[:, PAST:]
        if args.jitter:
            past = past + args.jitter * torch.randn_like(past)
        loss = pinball(model(past), levels)
        optimizer.zero_grad(set_to_none=bool(args.set_to_none))
        loss.backward()
        if args.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
        optimizer.step()
        if args.schedule:
            schedule.step()
        if args.track_best:
            best = min(best, loss.item())
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=64)
    add("--blocks", type=int, default=4)
    add("--width", type=int, default=64)
    add("--depth", type=int, default=3)
    add("--jitter", type=float, default=0.02, help="noise on what was measured; 0: none")
    add("--schedule", type=int, default=1, help="0: a constant learning rate")
    add("--track_best", type=int, default=1, help="1: remember the smallest loss")
    add("--detect_anomaly", type=int, default=1, help="1: name the operation that made a gradient NaN")
    add("--foreach", type=int, default=1, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=1.0, help="0: leave gradients as they are")
    add("--lr", type=float, default=2e-3)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    run(parse())
