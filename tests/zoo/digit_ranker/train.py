"""Trains a small ranker of noisy digits, and measures it on held-out ones now and then."""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TRAIN, HELD_OUT, PIXELS, DIGITS = 8192, 1024, 784, 10


def make_digits(number: int, seed: int) -> TensorDataset:
    """Noisy copies of ten templates, and which one each is."""
    templates = torch.randn(DIGITS, PIXELS, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    digits = torch.randint(0, DIGITS, (number,), generator=generator)
    noise = torch.randn(number, PIXELS, generator=generator)
    return TensorDataset(0.25 * templates[digits] + 1.5 * noise, digits)


class Ranker(nn.Module):
    """Scores each digit for an image."""

    def __init__(self, width: int, norm: bool) -> None:
        super().__init__()
        between = (nn.LayerNorm(width),) if norm else ()
        self.layers = nn.Sequential(
            nn.Linear(PIXELS, width), *between, nn.GELU(), nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, DIGITS),
        )  # fmt: skip

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> tuple[float, float]:
    """Accuracy and mean reciprocal rank over the held-out images."""
    model.eval()
    hits = reciprocal = count = 0.0
    for images, digits in loader:
        order = model(images.to(device)).argsort(dim=1, descending=True)
        ranks = (order == digits[:, None].to(device)).float().argmax(dim=1) + 1
        hits += float((ranks == 1).sum())
        reciprocal += float((1 / ranks).sum())
        count += len(digits)
    model.train()
    return hits / count, reciprocal / count


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pin = bool(args.pin_memory) and device.type == "cuda"
    loader = DataLoader(make_digits(TRAIN, 1), args.batch_size, shuffle=True, pin_memory=pin)
    held_out = DataLoader(make_digits(HELD_OUT, 2), args.eval_batch_size)
    model = Ranker(args.width, bool(args.norm)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, args.momentum, foreach=bool(args.foreach))
    end, step = math.inf, 0
    while step < args.steps and time.monotonic() < end:
        for images, digits in loader:
            step += 1
            scores = model(images.to(device, non_blocking=True))
            loss = nn.functional.cross_entropy(scores, digits.to(device, non_blocking=True))
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            if args.clip_norm:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            if step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if step % args.eval_every == 0:
                accuracy, rank = evaluate(model, held_out, device)
                print(f"held out after {step} steps: accuracy {accuracy:.3f}, rank {rank:.3f}", flush=True)
            if step == args.warmup_steps:
                end = time.monotonic() + args.duration
            if step == args.steps or time.monotonic() >= end:
                break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=64)
    add("--width", type=int, default=512)
    add("--norm", type=int, default=1)
    add("--eval_every", type=int, default=5)
    add("--eval_batch_size", type=int, default=64)
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=1.0)
    add("--momentum", type=float, default=0.9)
    add("--lr", type=float, default=0.003)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
