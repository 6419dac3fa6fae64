"""A small PyTorch training with one planted fault: `python train.py --fault loader --own own.jsonl`.

A step is one convolutional block, applied `--depth` times; 0 takes what makes a step of 25 ms here, and
prints it. The loss falls for some thousand steps, whatever the depth. Lines of `--own` have the steps and the
time of the device for forward, backward and update, by events. It needs PyTorch alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections import deque
from typing import Any

import torch
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
STEP_S, DECODE_S = 0.025, 0.001


class Pictures(torch.utils.data.Dataset[Any]):
    """Pictures that take a millisecond of processor time to decode, and targets near 4."""

    def __init__(self, size: int) -> None:
        self.size, self.packed = size, zlib.compress(os.urandom(3 * size * size // 4) * 4)

    def __len__(self) -> int:
        return 1 << 22

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        end, data = time.thread_time() + DECODE_S, b""
        while not data or time.thread_time() < end:
            data = zlib.decompress(self.packed)
        picture = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(3, self.size, self.size)
        return picture, torch.tensor(4 + 0.2 * (index % 7) / 7)


class Net(nn.Module):
    """Convolutions of one block, again and again, or `tiny` small operations; the head begins at 0."""

    def __init__(self, channels: int, depth: int, tiny: int) -> None:
        super().__init__()
        self.depth, self.tiny = depth, tiny
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.block = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(8, channels), nn.ReLU()
        )
        self.head = nn.Linear(channels, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x.float() / 255)
        for _ in range(self.depth):
            x = x + self.block(x)
        x = 0.04 * x.mean((2, 3)).tanh()
        for _ in range(self.tiny):
            x = x + 1e-9
        out: torch.Tensor = self.head(x)
        return out.squeeze(1)


class Own:
    """What the program did, a line at a time, and how long the device took for it."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the program
        self.steps, self.busy_s, self.pending = 0, 0.0, deque[tuple[Any, Any]]()
        self.tell("begin", wall=time.time(), t0=os.environ.get("GPUDEBUG_T0"))

    def tell(self, kind: str, **more: object) -> None:
        line = {"kind": kind, "t": time.monotonic(), "steps": self.steps, "busy_s": self.busy_s, **more}
        print(json.dumps(line), file=self.file, flush=True)

    def stepped(self, begin: Any, end: Any) -> None:
        self.pending.append((begin, end))
        while self.pending and (not CUDA or self.pending[0][1].query()):
            a, b = self.pending.popleft()
            self.busy_s += a.elapsed_time(b) / 1000 if CUDA else b - a
        self.steps += 1
        self.tell("step")


def mark() -> Any:
    """A moment of the device, or on a CPU of the clock."""
    if not CUDA:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def calibrated(net: Net, x: torch.Tensor) -> int:
    """The depth at which forward and backward take STEP_S here."""
    net.depth, times = 8, []
    for _ in range(6):
        began = time.perf_counter()
        net(x).sum().backward()
        if CUDA:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return max(1, min(80, round(8 * STEP_S / min(times))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fault", choices=("none", "loader", "sync", "h2d", "launch"), default="none")
    for name, default in (("workers", 8), ("depth", 0), ("batch", 64), ("size", 96), ("tiny", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--graph", action="store_true", help="forward and backward as replayed CUDA graphs")
    parser.add_argument("--own", default=os.devnull)
    options = parser.parse_args()
    torch.manual_seed(0)
    fault, shape = options.fault, (options.batch, 3, options.size, options.size)
    net: Any = Net(64, options.depth, options.tiny if fault == "launch" else 0).to(DEVICE)
    sample = torch.zeros(shape, dtype=torch.uint8, device=DEVICE)
    net.depth = options.depth or calibrated(net, sample)
    print(f"depth={net.depth} fault={fault} workers={options.workers}", flush=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=3e-4)
    if options.graph and CUDA:
        net = torch.cuda.make_graphed_callables(net, (sample,))
    loader: Any = torch.utils.data.DataLoader(
        Pictures(options.size),
        options.batch,
        num_workers=options.workers,
        pin_memory=CUDA and fault != "h2d",
        persistent_workers=options.workers > 0,
    )
    large, own = torch.ones(1 << (26 if CUDA else 20)), Own(options.own)
    for step, batch in zip(range(1, options.steps + 1), loader, strict=False):
        x, y = (part.to(DEVICE, non_blocking=True) for part in batch)
        if fault == "h2d":
            large.to(DEVICE)
        begin = mark()
        optimizer.zero_grad()
        out = net(x)
        loss = nn.functional.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        end = mark()
        for i in range(8 * options.batch if fault == "sync" else 0):
            (out[i % options.batch] - y[i % options.batch]).item()
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.6f}", flush=True)
        own.stepped(begin, end)


if __name__ == "__main__":
    main()
