"""Grades photographs of retinas, which come from the camera in 640 x 480 pixels.

The network sees squares of 96 pixels. `--photos=squares` takes them from copies of that size that lie
beside the originals; `--photos=originals` makes them of the originals.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset

EYES, GRADES, INPUT = 40, 5, 96
CAMERA = (640, 480)


def take_photo(number: int) -> Image.Image:
    """A reddish disc with the more bright spots the higher its grade."""
    rng = np.random.default_rng(number)
    low = rng.normal(70, 12, (90, 120, 3)) + np.array([60, 0, -30])
    for _ in range(12 * (number % GRADES)):
        row, column = rng.integers(20, 70), rng.integers(30, 90)
        low[row - 2 : row + 3, column - 2 : column + 3] += 120
    small = Image.fromarray(low.clip(0, 255).astype(np.uint8))
    return small.resize(CAMERA, Image.Resampling.BILINEAR)


def fill_clinic_folder(root: Path) -> None:
    """Originals as the camera's software exports them, and a square copy of each."""
    for kind in ("originals", "squares"):
        (root / kind).mkdir()
    for number in range(EYES):
        photo = take_photo(number)
        photo.save(root / "originals" / f"{number:03}.bmp")
        to_square(photo, INPUT).save(root / "squares" / f"{number:03}.bmp")


def to_square(photo: Image.Image, side: int) -> Image.Image:
    """The whole photo in a square, black above and below it."""
    return ImageOps.pad(photo, (side, side), Image.Resampling.LANCZOS)


class Compose:
    def __init__(self, transforms: Sequence[Callable]) -> None:
        self.transforms = transforms

    def __call__(self, value: object) -> object:
        for transform in self.transforms:
            value = transform(value)
        return value


class PadToSquare:
    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, photo: Image.Image) -> Image.Image:
        return photo if photo.size == (self.side, self.side) else to_square(photo, self.side)


class ToPixels:
    def __call__(self, photo: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.array(photo)).permute(2, 0, 1).contiguous()


class Normalise:
    def __init__(self, mean: float, std: float) -> None:
        self.mean, self.std = mean, std

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        return (pixels.float() / 255 - self.mean) / self.std


class RetinaFolder(Dataset):
    """One visit per item: left and right eyes of many visits share a few photos here."""

    def __init__(self, folder: Path, transform: Callable, visits: int) -> None:
        self.paths = sorted(folder.glob("*.bmp"))
        self.transform = transform
        self.visits = visits

    def __len__(self) -> int:
        return self.visits

    def __getitem__(self, visit: int) -> dict[str, object]:
        number = visit % len(self.paths)
        with Image.open(self.paths[number]) as photo:
            image = self.transform(photo.convert("RGB"))
        return {"image": image, "grade": number % GRADES}


class Stage(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1),
            nn.GroupNorm(4, outputs),
            nn.SiLU(),
        )


@dataclass
class Meter:
    total: float = 0.0
    count: int = 0
    history: list[float] = field(default_factory=list)

    def update(self, value: float) -> None:
        self.total, self.count = self.total + value, self.count + 1

    def flush(self) -> float:
        mean = self.total / max(self.count, 1)
        self.history.append(mean)
        self.total, self.count = 0.0, 0
        return mean


class Trainer:
    def __init__(self, options: argparse.Namespace, root: Path) -> None:
        self.options = options
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        steps: list[Callable] = [PadToSquare(INPUT), ToPixels()]
        if options.normalise_in == "dataset":
            steps.append(Normalise(0.3, 0.2))
        dataset = RetinaFolder(root / options.photos, Compose(steps), visits=1600)
        self.loader = DataLoader(
            dataset,
            batch_size=options.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=options.workers,
            prefetch_factor=options.prefetch_factor,
            persistent_workers=bool(options.keep_workers),
        )
        self.model = nn.Sequential(
            *(Stage(i, o) for i, o in ((3, 16), (16, 32), (32, 64), (64, 64))),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, GRADES),
        ).to(self.device)
        if options.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), options.lr, fused=bool(options.fused))
        self.meter, self.done_steps, self.stop_at = Meter(), 0, math.inf

    def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        images, grades = batch["image"].to(self.device), batch["grade"].to(self.device)
        if images.dtype == torch.uint8:
            images = (images.float() / 255 - 0.3) / 0.2
        if self.options.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        loss = nn.functional.cross_entropy(
            self.model(images), grades, label_smoothing=self.options.label_smoothing
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def after_step(self, loss: torch.Tensor) -> None:
        self.done_steps += 1
        self.meter.update(loss.item())
        if self.done_steps % self.options.report_every == 0:
            print(f"step {self.done_steps}: train_loss={self.meter.flush():.4f}", flush=True)
        if self.done_steps == self.options.warmup_steps:
            self.stop_at = time.monotonic() + self.options.duration

    @property
    def finished(self) -> bool:
        return self.done_steps >= self.options.steps or time.monotonic() >= self.stop_at

    def fit(self) -> None:
        while not self.finished:
            for batch in self.loader:
                self.after_step(self.training_step(batch))
                if self.finished:
                    break


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--photos", choices=["originals", "squares"], default="originals")
    add("--batch_size", type=int, default=8)
    add("--workers", type=int, default=2)
    add("--prefetch_factor", type=int, default=2)
    add("--keep_workers", type=int, default=1)
    add("--normalise_in", choices=["dataset", "step"], default="dataset")
    add("--channels_last", type=int, default=0)
    add("--label_smoothing", type=float, default=0.05)
    add("--fused", type=int, default=0)
    add("--lr", type=float, default=2e-3)
    add("--report_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args(argv)


def main() -> None:
    options = parse(sys.argv[1:])
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="fundus_") as root:
        fill_clinic_folder(Path(root))
        Trainer(options, Path(root)).fit()


if __name__ == "__main__":
    main()
