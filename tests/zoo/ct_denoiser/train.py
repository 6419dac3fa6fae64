"""Trains a filter that takes the noise out of computed tomography volumes, which lie in main memory."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

DEPTH, SIDE = 16, 128


def scan_phantoms(number: int, seed: int) -> Tensor:
    """Ellipsoids of different density, as 16-bit Hounsfield units: (number, DEPTH, SIDE, SIDE)."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.linspace(-1, 1, DEPTH)[:, None, None]
    y, x = torch.linspace(-1, 1, SIDE)[:, None], torch.linspace(-1, 1, SIDE)
    phantoms = torch.full((24, DEPTH, SIDE, SIDE), -1000, dtype=torch.int16)
    for volume in phantoms:
        for _ in range(6):
            cz, cy, cx, density = (2 * torch.rand(4, generator=generator) - 1).tolist()
            inside = (z - cz) ** 2 + 2 * (y - 0.6 * cy) ** 2 + 2 * (x - 0.6 * cx) ** 2 < 0.4
            volume[inside] = int(400 * density)
    return phantoms[torch.randint(0, len(phantoms), (number,), generator=generator)]


class VolumeStore:
    """Volumes in main memory, as float32 ready for the device, in a random order of whole batches."""

    def __init__(self, number: int, batch: int, pinned: bool, seed: int) -> None:
        self.volumes = scan_phantoms(number, seed).float().div_(1000)[:, None]
        if pinned:
            self.volumes = self.volumes.pin_memory()
        self.batch = batch

    def batches(self) -> Iterator[Tensor]:
        while True:
            for place in torch.randperm(len(self.volumes) // self.batch).tolist():
                yield self.volumes[place * self.batch :][: self.batch]


class SeparableFilter(nn.Module):
    """A residual filter: within slices, then across them."""

    def __init__(self, channels: int, layers: int, norm: bool) -> None:
        super().__init__()
        self.shrink = nn.Conv3d(1, channels, (1, 4, 4), stride=(1, 4, 4))
        blocks: list[nn.Module] = []
        for _ in range(layers):
            blocks += [nn.Conv3d(channels, channels, (1, 3, 3), padding=(0, 1, 1)), nn.ReLU()]
            blocks += [nn.Conv3d(channels, channels, (3, 1, 1), padding=(1, 0, 0))]
            blocks += [nn.GroupNorm(4, channels), nn.ReLU()] if norm else [nn.ReLU()]
        self.blocks = nn.Sequential(*blocks)
        self.grow = nn.ConvTranspose3d(channels, 1, (1, 4, 4), stride=(1, 4, 4))

    def forward(self, noisy: Tensor) -> Tensor:
        return noisy + self.grow(self.blocks(self.shrink(noisy)))


def add_dose_noise(volumes: Tensor, dose: float) -> Tensor:
    """The less dose, the more noise, and more of it where it is dense."""
    return volumes + torch.randn_like(volumes) * (0.3 + 0.1 * volumes) / dose**0.5


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = bool(args.cudnn_benchmark)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    size = args.batch_size if cuda else min(2, args.batch_size)
    store = VolumeStore(8 * size, size, cuda and bool(args.pin_memory), args.seed)
    network = SeparableFilter(args.channels, args.layers, bool(args.norm)).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), args.lr, foreach=bool(args.foreach))
    stop = math.inf
    for step, volumes in enumerate(store.batches(), 1):
        clean = volumes.to(device, non_blocking=bool(args.non_blocking))
        with torch.autocast(device.type, torch.bfloat16, enabled=bool(args.autocast)):
            restored = network(add_dose_noise(clean, args.dose))
        loss = nn.functional.l1_loss(restored.float(), clean)
        optimizer.zero_grad(set_to_none=bool(args.set_to_none))
        loss.backward()
        if args.clip_norm:
            nn.utils.clip_grad_norm_(network.parameters(), args.clip_norm)
        optimizer.step()
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if step == args.steps or time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=256, help="volumes of a mebibyte; two where there is no GPU")
    add("--channels", type=int, default=8)
    add("--layers", type=int, default=1)
    add("--norm", type=int, default=1, help="1: normalise groups of channels")
    add("--dose", type=float, default=1.0)
    add("--autocast", type=int, default=0, help="1: compute in bfloat16 where it is safe")
    add("--pin_memory", type=int, default=0, help="1: the volumes lie in page-locked memory")
    add("--non_blocking", type=int, default=1)
    add("--cudnn_benchmark", type=int, default=0)
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
    train(parse())
