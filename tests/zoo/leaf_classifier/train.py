"""Trains a leaf classifier; each photo is augmented before the network sees it.

`--augment_on=sample` does so photo by photo, `--augment_on=batch` for a whole batch at once: the same
transforms, drawn anew for each photo, both in the loader's workers.
"""

from __future__ import annotations

import argparse
import math
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PHOTOS, SPECIES, SIDE = 2048, 12, 64


def rotate_and_scale(photos: torch.Tensor) -> torch.Tensor:
    """Turns each of (N, 3, H, W) by up to 20 degrees and scales it by up to a tenth."""
    angles = (torch.rand(len(photos)) - 0.5) * 0.7
    scales = 0.9 + 0.2 * torch.rand(len(photos))
    cos, sin, zero = angles.cos() * scales, angles.sin() * scales, torch.zeros_like(angles)
    affine = torch.stack([torch.stack([cos, -sin, zero], 1), torch.stack([sin, cos, zero], 1)], 1)
    grid = nn.functional.affine_grid(affine, list(photos.shape), align_corners=False)
    return nn.functional.grid_sample(photos, grid, align_corners=False)


def jitter_colours(photos: torch.Tensor) -> torch.Tensor:
    """Brightness, contrast and saturation of each photo, by up to a fifth."""
    factors = 0.8 + 0.4 * torch.rand(3, len(photos), 1, 1, 1)
    photos = photos * factors[0]
    mean = photos.mean((1, 2, 3), keepdim=True)
    photos = mean + (photos - mean) * factors[1]
    grey = photos.mean(1, keepdim=True)
    return grey + (photos - grey) * factors[2]


def erase(photos: torch.Tensor) -> torch.Tensor:
    """Greys a random square of each photo."""
    corner = torch.randint(0, SIDE - 12, (2, len(photos), 1))
    at = torch.arange(SIDE)
    rows, columns = (((at >= c) & (at < c + 12)) for c in corner)
    return photos.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0.5)


def speckle(photo: torch.Tensor) -> torch.Tensor:
    """Sets a hundred random pixels of one photo (3, H, W) to a random grey, as dust on the lens does."""
    for row, column in torch.randint(0, SIDE, (100, 2)).tolist():
        photo[:, row, column] = random.random()
    return photo


def speckle_batch(photos: torch.Tensor) -> torch.Tensor:
    """`speckle` for (N, 3, H, W) at once."""
    pixels = torch.randint(0, SIDE * SIDE, (len(photos), 1, 100))
    grey = torch.rand(len(photos), 1, 100)
    return photos.flatten(2).scatter(2, pixels.expand(-1, 3, -1), grey.expand(-1, 3, -1)).view_as(photos)


def augment(photos: torch.Tensor) -> torch.Tensor:
    return erase(jitter_colours(rotate_and_scale(photos)))


class Leaves(Dataset):
    """Photos in memory, as bytes; two of the same species share a pattern of veins."""

    def __init__(self, augmented: bool) -> None:
        generator = torch.Generator().manual_seed(7)
        veins = nn.functional.interpolate(torch.randn(SPECIES, 3, 8, 8, generator=generator), SIDE)
        self.species = torch.randint(0, SPECIES, (PHOTOS,), generator=generator)
        noise = torch.randn(PHOTOS, 3, SIDE, SIDE, generator=generator)
        self.photos = (128 + 24 * veins[self.species] + 40 * noise).clamp(0, 255).byte()
        self.augmented = augmented

    def __len__(self) -> int:
        return PHOTOS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        photo = self.photos[index].float() / 255
        if self.augmented:
            photo = speckle(augment(photo[None])[0])
        return photo, self.species[index]


def collate_augmented(samples: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    photos, species = zip(*samples, strict=True)
    return speckle_batch(augment(torch.stack(photos))), torch.stack(species)


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4, padding=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, SPECIES),
    )  # fmt: skip


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(
        Leaves(args.augment_on == "sample"),
        args.batch_size,
        shuffle=True,
        collate_fn=collate_augmented if args.augment_on == "batch" else None,
        num_workers=args.num_workers,
        prefetch_factor=args.prefetch_factor,
        persistent_workers=bool(args.persistent_workers),
        pin_memory=bool(args.pin_memory) and device.type == "cuda",
    )
    model = make_model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, foreach=bool(args.foreach))
    smoothing = args.label_smoothing
    end, step = math.inf, 0
    while step < args.steps and time.monotonic() < end:
        for batch in loader:
            step += 1
            photos, species = (part.to(device, non_blocking=True) for part in batch)
            loss = nn.functional.cross_entropy(model(photos), species, label_smoothing=smoothing)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if step == args.warmup_steps:
                end = time.monotonic() + args.duration
            if step == args.steps or time.monotonic() >= end:
                break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=64)
    add("--augment_on", choices=["sample", "batch"], default="sample")
    add("--num_workers", type=int, default=2)
    add("--prefetch_factor", type=int, default=2)
    add("--persistent_workers", type=int, default=1)
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--label_smoothing", type=float, default=0.0)
    add("--lr", type=float, default=1e-3)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
