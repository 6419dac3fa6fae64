"""Regresses the shape of galaxies from telescope cutouts that fit into memory."""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

CUTOUTS, SIDE, BANDS = 1024, 48, 3


def render_galaxies(count: int) -> tuple[Tensor, Tensor]:
    """Cutouts (count, BANDS, SIDE, SIDE) as bytes, and each galaxy's (e1, e2, log radius)."""
    generator = torch.Generator().manual_seed(11)
    shapes = torch.rand(count, 3, generator=generator) * 1.2 - 0.6
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    e1, e2, size = (part[:, None, None] for part in shapes.unbind(1))
    distance = x**2 * (1 - e1) + y**2 * (1 + e1) - 2 * e2 * x * y
    light = torch.exp(-distance / (0.15 * (1 + size)))[:, None] * torch.tensor([1.0, 0.8, 0.5])[:, None, None]
    noise = 0.05 * torch.randn(count, BANDS, SIDE, SIDE, generator=generator)
    return ((light + noise) * 200 + 20).clamp(0, 255).byte(), shapes


class GalaxyCutouts(Dataset):
    def __init__(self, count: int, rotate: bool) -> None:
        self.cutouts, self.shapes = render_galaxies(count)
        self.rotate = rotate

    def __len__(self) -> int:
        return len(self.cutouts)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        cutout, shape = self.cutouts[index], self.shapes[index]
        if self.rotate and torch.rand(()) < 0.5:
            cutout, shape = cutout.rot90(1, (1, 2)), shape * torch.tensor([-1, -1, 1])
        return cutout, shape


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1),
            nn.GroupNorm(4, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1),
            nn.GroupNorm(4, outputs),
        )
        self.skip = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.skip(x))


class ShapeModule(nn.Module):
    """The network, its loss and its optimizer."""

    def __init__(self, hparams: argparse.Namespace) -> None:
        super().__init__()
        self.hparams = hparams
        widths = (BANDS, 24, 48, 64)
        self.trunk = nn.Sequential(*(Bottleneck(i, o, 2) for i, o in itertools.pairwise(widths)))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64 * 36, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, cutouts: Tensor) -> Tensor:
        return self.head(self.trunk(cutouts.float() / 128 - 1))

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        cutouts, shapes = batch
        return nn.functional.smooth_l1_loss(self(cutouts), shapes, beta=self.hparams.huber_beta)

    @torch.no_grad()
    def validation_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        cutouts, shapes = batch
        return (self(cutouts) - shapes).abs().mean()

    def configure_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            self.parameters(),
            self.hparams.lr,
            weight_decay=self.hparams.weight_decay,
            fused=bool(self.hparams.fused),
        )


class DataModule:
    def __init__(self, hparams: argparse.Namespace) -> None:
        self.hparams = hparams
        cutouts = GalaxyCutouts(CUTOUTS, bool(hparams.rotate))
        self.training = Subset(cutouts, range(64, CUTOUTS))
        self.held_out = Subset(cutouts, range(64))

    def train_loader(self) -> DataLoader:
        return DataLoader(
            self.training,
            self.hparams.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=self.hparams.num_workers,
            prefetch_factor=self.hparams.prefetch_factor,
            persistent_workers=True,
            pin_memory=bool(self.hparams.pin_memory) and torch.cuda.is_available(),
        )

    def held_out_batch(self) -> tuple[Tensor, Tensor]:
        cutouts, shapes = zip(*(self.held_out[i] for i in range(len(self.held_out))), strict=True)
        return torch.stack(cutouts), torch.stack(shapes)


class Loop:
    def __init__(self, hparams: argparse.Namespace, module: ShapeModule, data: DataModule, to: Path) -> None:
        self.hparams, self.module, self.data, self.folder = hparams, module, data, to
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.global_step = 0

    def endless(self) -> Iterator[tuple[Tensor, Tensor]]:
        loader = self.data.train_loader()
        while True:
            for cutouts, shapes in loader:
                yield cutouts.to(self.device, non_blocking=True), shapes.to(self.device, non_blocking=True)

    def after(self, loss: Tensor) -> None:
        if self.global_step % self.hparams.log_every_n_steps == 0:
            print(f"global_step={self.global_step} train_loss={loss.item():.5f}", flush=True)
        if self.global_step % self.hparams.val_every == 0:
            error = self.module.validation_step([part.to(self.device) for part in self.held_out])
            print(f"held-out error {error.item():.4f}", flush=True)
        if self.global_step % self.hparams.save_every == 0:
            torch.save(self.module.state_dict(), self.folder / "last.pt")

    def run(self) -> None:
        self.module.to(self.device)
        optimizer = self.module.configure_optimizer()
        self.held_out = self.data.held_out_batch()
        until = math.inf
        for batch in self.endless():
            loss = self.module.training_step(batch)
            optimizer.zero_grad(set_to_none=bool(self.hparams.set_to_none))
            loss.backward()
            if self.hparams.gradient_clip_val:
                nn.utils.clip_grad_norm_(self.module.parameters(), self.hparams.gradient_clip_val)
            optimizer.step()
            self.global_step += 1
            self.after(loss)
            if self.global_step == self.hparams.warmup_steps:
                until = time.monotonic() + self.hparams.duration
            if self.global_step >= self.hparams.steps or time.monotonic() >= until:
                return


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=32)
    add("--num_workers", type=int, default=2)
    add("--prefetch_factor", type=int, default=4)
    add("--pin_memory", type=int, default=0)
    add("--rotate", type=int, default=1, help="1: turn half of the cutouts by a right angle")
    add("--huber_beta", type=float, default=0.5)
    add("--weight_decay", type=float, default=0.01)
    add("--fused", type=int, default=0)
    add("--set_to_none", type=int, default=1)
    add("--gradient_clip_val", type=float, default=1.0)
    add("--lr", type=float, default=1e-3)
    add("--val_every", type=int, default=100)
    add("--save_every", type=int, default=200)
    add("--log_every_n_steps", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    hparams = parse()
    torch.manual_seed(hparams.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="galaxies_") as folder:
        Loop(hparams, ShapeModule(hparams), DataModule(hparams), Path(folder)).run()


if __name__ == "__main__":
    main()
