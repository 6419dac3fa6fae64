"""Trains a network on spoken commands that are read from a tape-like archive, and keeps a journal of it.

Archive and journal are simulated: the archive hands its clips out at `archive_mb_s`; the journal lies on a
share of the office network, where it takes `share_s` until a line that was flushed is safe.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLIPS, SAMPLES, COMMANDS = 512, 8000, 10


class Archive:
    """One file with all clips, one after the other, as float32."""

    def __init__(self, path: Path, mb_s: float) -> None:
        self.path = path
        self.file = path.open("rb", buffering=0)
        self.mb_s = mb_s

    def read(self, offset: int, size: int) -> bytes:
        self.file.seek(offset)
        data = self.file.read(size)
        time.sleep(size / 2**20 / self.mb_s)
        return data


def write_archive(path: Path) -> None:
    """Clips of noisy tones; each command has its own three."""
    rng = np.random.default_rng(0)
    at = np.arange(SAMPLES) / 8000
    tones = [sum(np.sin(2 * np.pi * f * at) for f in rng.uniform(100, 1500, 3)) for _ in range(COMMANDS)]
    clips = [tones[i % COMMANDS] + rng.normal(0, 2, SAMPLES) for i in range(CLIPS)]
    path.write_bytes(np.asarray(clips, np.float32).tobytes())


class Commands(Dataset):
    def __init__(self, archive: Archive, in_memory: bool, normalise: bool) -> None:
        self.archive = archive
        self.normalise = normalise
        self.kept = archive.path.read_bytes() if in_memory else None

    def __len__(self) -> int:
        return 32 * CLIPS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        index %= CLIPS
        start, size = 4 * SAMPLES * index, 4 * SAMPLES
        data = self.kept[start : start + size] if self.kept else self.archive.read(start, size)
        clip = torch.frombuffer(bytearray(data), dtype=torch.float32)
        return (clip - clip.mean()) / clip.std() if self.normalise else clip, index % COMMANDS


class Journal:
    """One JSON line for each entry; `flush_every` entries are flushed to the share at once."""

    def __init__(self, path: Path, flush_every: int, share_s: float) -> None:
        self.file = path.open("w")
        self.flush_every = flush_every
        self.share_s = share_s
        self.entries = 0

    def log(self, **entry: Any) -> None:
        self.file.write(json.dumps(entry) + "\n")
        self.entries += 1
        if self.entries % self.flush_every == 0:
            self.flush()

    def flush(self) -> None:
        self.file.flush()
        time.sleep(self.share_s)


def make_model(width: int, dropout: float) -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(1, width, 64, stride=16), nn.ReLU(), nn.Conv1d(width, width, 9, stride=3), nn.ReLU(),
        nn.Conv1d(width, width, 5, stride=2), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(),
        nn.Dropout(dropout), nn.Linear(4 * width, COMMANDS),
    )  # fmt: skip


def train(args: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    write_archive(folder / "archive.f32")
    archive = Archive(folder / "archive.f32", args.archive_mb_s)
    pin = bool(args.pin_memory) and device.type == "cuda"
    dataset = Commands(archive, bool(args.in_memory), bool(args.normalise))
    loader = DataLoader(dataset, args.batch_size, shuffle=True, num_workers=1, pin_memory=pin)
    journal = Journal(folder / "journal.jsonl", args.flush_every, args.share_s)
    model = make_model(args.width, args.dropout).to(device)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, foreach=bool(args.foreach))
    end = math.inf
    for step, (clips, commands) in enumerate(loader, 1):
        logits = model(clips[:, None].to(device, non_blocking=True))
        loss = nn.functional.cross_entropy(logits, commands.to(device, non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
        optimizer.step()
        journal.log(step=step, loss=loss.item(), norm=norm.item(), lr=args.lr)
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            end = time.monotonic() + args.duration
        if step == args.steps or time.monotonic() >= end:
            break
    journal.flush()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--archive_mb_s", type=float, default=5.0)
    add("--in_memory", type=int, default=0, help="1: copy the archive into memory before the first step")
    add("--flush_every", type=int, default=1, help="entries of the journal from one flush to the next")
    add("--share_s", type=float, default=0.012)
    add("--normalise", type=int, default=1)
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--width", type=int, default=96)
    add("--dropout", type=float, default=0.1)
    add("--clip_norm", type=float, default=1.0)
    add("--lr", type=float, default=1e-3)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        train(parse(), Path(place))
