"""Trains a network on satellite tiles that lie on a slow disk, one file a tile.

The disk is simulated: files are read from a temporary folder, and a lock shared by all processes lets one
read after the other through, at `disk_mb_s`. A tile is kept as float32 (`raw`) or as bytes (`packed`).
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TILES, BANDS, SIDE, KINDS = 256, 4, 64, 8


class SlowDisk:
    """Reads files at `mb_s` megabytes a second, however many processes ask at once."""

    def __init__(self, mb_s: float) -> None:
        self.mb_s = mb_s
        self.busy = multiprocessing.Lock()

    def read(self, path: Path) -> bytes:
        with self.busy:
            data = path.read_bytes()
            time.sleep(len(data) / 2**20 / self.mb_s)
        return data


def write_tiles(folder: Path, packed: bool) -> None:
    """A tile shows the pattern of its kind of land under noise; its name tells the kind."""
    rng = np.random.default_rng(0)
    patterns = np.kron(rng.normal(0, 20, (KINDS, BANDS, 8, 8)), np.ones((8, 8)))
    for i in range(TILES):
        noisy = (128 + patterns[i % KINDS] + rng.normal(0, 45, (BANDS, SIDE, SIDE))).clip(0, 255)
        kept = noisy.astype(np.uint8) if packed else noisy.astype(np.uint8).astype(np.float32)
        (folder / f"{i:04}-{i % KINDS}.tile").write_bytes(kept.tobytes())


class Tiles(Dataset):
    def __init__(self, folder: Path, disk: SlowDisk, args: argparse.Namespace) -> None:
        self.paths = sorted(folder.glob("*.tile"))
        self.disk = disk
        self.dtype = np.uint8 if args.tile_format == "packed" else np.float32
        self.flip = bool(args.flip)

    def __len__(self) -> int:
        return 16 * TILES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index % TILES]
        tile = np.frombuffer(self.disk.read(path), self.dtype).reshape(BANDS, SIDE, SIDE)
        if self.flip and index % 2:
            tile = tile[:, ::-1]
        return torch.from_numpy(tile.copy()), int(path.stem.rsplit("-", 1)[1])


class LandCover(nn.Module):
    """Two convolutions that halve the tile, then residual ones."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(BANDS, 24, 3, 2, 1), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU()
        )
        self.blocks = nn.ModuleList(nn.Conv2d(48, 48, 3, padding=1) for _ in range(depth))
        self.head = nn.Linear(48 * 16, KINDS)

    def forward(self, tiles: torch.Tensor) -> torch.Tensor:
        hidden = self.stem(tiles)
        for block in self.blocks:
            hidden = hidden + torch.relu(block(hidden))
        return self.head(nn.functional.adaptive_avg_pool2d(hidden, 4).flatten(1))


def train(args: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    write_tiles(folder, args.tile_format == "packed")
    loader = DataLoader(
        Tiles(folder, SlowDisk(args.disk_mb_s), args),
        args.batch_size,
        shuffle=True,
        num_workers=args.num_workers,
        prefetch_factor=args.prefetch_factor,
        persistent_workers=bool(args.persistent_workers),
        pin_memory=bool(args.pin_memory) and device.type == "cuda",
    )
    model = LandCover(args.depth).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, nesterov=bool(args.nesterov))
    end, step = math.inf, 0
    while step < args.steps and time.monotonic() < end:
        for tiles, kinds in loader:
            step += 1
            inputs = tiles.to(device, non_blocking=True).float() / 128 - 1
            loss = nn.functional.cross_entropy(model(inputs), kinds.to(device, non_blocking=True))
            optimizer.zero_grad()
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
    add("--batch_size", type=int, default=16)
    add("--disk_mb_s", type=float, default=16.0)
    add("--tile_format", choices=["raw", "packed"], default="raw")
    add("--num_workers", type=int, default=2)
    add("--prefetch_factor", type=int, default=2)
    add("--persistent_workers", type=int, default=1)
    add("--pin_memory", type=int, default=0)
    add("--flip", type=int, default=1, help="turn every other tile upside down")
    add("--depth", type=int, default=4)
    add("--nesterov", type=int, default=0)
    add("--lr", type=float, default=0.01)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        train(parse(), Path(place))
