"""Trains a convolutional autoencoder on maps of defects on wafers, and keeps a journal of the run."""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

SIDE, MAPS = 32, 2048


def draw_maps(number: int, seed: int) -> torch.Tensor:
    """Rings, scratches and clusters of failed dies, with noise: (number, 1, SIDE, SIDE) from 0 to 1."""
    generator = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, SIDE)
    y, x = axis[:, None], axis[None, :]
    centre = 0.5 * torch.rand(number, 2, 1, 1, generator=generator) - 0.25
    size, angle = torch.rand(2, number, 1, 1, generator=generator)
    away = ((x - centre[:, 0]) ** 2 + (y - centre[:, 1]) ** 2).sqrt()
    ring = torch.exp(-40 * (away - 0.3 - 0.5 * size) ** 2)
    across = torch.sin(math.pi * angle) * x + torch.cos(math.pi * angle) * y - size + 0.5
    scratch = torch.exp(-120 * across**2)
    kind = torch.randint(0, 2, (number, 1, 1), generator=generator)
    maps = torch.where(kind == 0, ring, scratch)
    return (maps + 0.1 * torch.randn(maps.shape, generator=generator)).clamp(0, 1)[:, None]


class Autoencoder(nn.Module):
    def __init__(self, channels: int, code: int) -> None:
        super().__init__()
        wide, flat = 2 * channels, 2 * channels * (SIDE // 4) ** 2
        self.encode = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(channels, wide, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(flat, code),
        )  # fmt: skip
        self.decode = nn.Sequential(
            nn.Linear(code, flat), nn.ReLU(), nn.Unflatten(1, (wide, SIDE // 4, SIDE // 4)),
            nn.ConvTranspose2d(wide, channels, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(channels, 1, 4, stride=2, padding=1),
        )  # fmt: skip

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(maps))


class Journal:
    """One JSON document a line: distributions of weights, gradients and second moments, and some drawings."""

    def __init__(self, path: Path, bins: int, images: int) -> None:
        self.file = path.open("w", encoding="utf-8")
        self.bins, self.images = bins, images

    def distribution(self, tensor: torch.Tensor) -> dict[str, list[float]]:
        values = tensor.detach().float().cpu().numpy().ravel()
        counts, edges = np.histogram(values, bins=self.bins)
        quantiles = np.quantile(values, [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
        return {"counts": counts.tolist(), "edges": edges.tolist(), "quantiles": quantiles.tolist()}

    def add_summary(self, step: int, model: nn.Module, optimizer: Any, drawn: torch.Tensor) -> None:
        document = {"step": step, "weights": {}, "gradients": {}, "moments": {}}
        for name, parameter in model.named_parameters():
            document["weights"][name] = self.distribution(parameter)
            document["gradients"][name] = self.distribution(parameter.grad)
            document["moments"][name] = self.distribution(optimizer.state[parameter]["exp_avg_sq"])
        pictures = (255 * drawn[: self.images, 0].detach().sigmoid()).byte()
        document["reconstructions"] = pictures.tolist()
        self.file.write(json.dumps(document) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def train(args: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    maps = draw_maps(MAPS, args.seed)
    if args.pin_memory and device.type == "cuda":
        maps = maps.pin_memory()
    model = Autoencoder(args.channels, args.code).to(device)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, foreach=bool(args.foreach))
    journal = Journal(folder / "journal.jsonl", args.summary_bins, args.summary_images)
    stop = math.inf
    for step in range(1, args.steps + 1):
        batch = maps[torch.randint(0, MAPS, (args.batch_size,))].to(device, non_blocking=True)
        noisy = batch + args.corruption * torch.randn_like(batch) if args.corruption else batch
        drawn = model(noisy)
        loss = nn.functional.binary_cross_entropy_with_logits(drawn, batch)
        if args.code_penalty:
            loss = loss + args.code_penalty * model.encode(batch[:8]).square().mean()
        optimizer.zero_grad(set_to_none=bool(args.set_to_none))
        loss.backward()
        optimizer.step()
        if step % args.summary_every == 0:
            journal.add_summary(step, model, optimizer, drawn)
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--channels", type=int, default=8)
    add("--code", type=int, default=32)
    add("--corruption", type=float, default=0.1, help="noise that the autoencoder should take away; 0: none")
    add("--code_penalty", type=float, default=1e-4, help="how large codes may grow; 0: as they like")
    add("--summary_every", type=int, default=1, help="steps from one line of the journal to the next")
    add("--summary_bins", type=int, default=64)
    add("--summary_images", type=int, default=8)
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--lr", type=float, default=5e-4)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        train(parse(), Path(place))
