"""Trains a recurrent tagger of token sequences and keeps checkpoints on a file server.

The server is simulated: each block that is written to it takes `block / server_mb_s` seconds.
"""

from __future__ import annotations

import argparse
import io
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

VOCABULARY, TAGS, LENGTH = 400, 9, 24


class ServerFile(io.FileIO):
    """A file on the server: what is written arrives at `mb_s` megabytes a second."""

    def __init__(self, path: Path, mb_s: float) -> None:
        super().__init__(path, "w")
        self.mb_s = mb_s

    def write(self, block: Any) -> int:
        size = super().write(block)
        time.sleep(size / 2**20 / self.mb_s)
        return size


class Tagger(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(2 * width, TAGS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(self.rnn(self.embedding(tokens))[0]))


def make_batches(size: int, bucket: bool) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Random sentences; a tag depends on its token and on the one before. `bucket` sorts each batch."""
    generator = torch.Generator().manual_seed(1)
    table = torch.randint(0, TAGS, (VOCABULARY, 4), generator=generator)
    while True:
        tokens = torch.randint(0, VOCABULARY, (size, LENGTH), generator=generator)
        if bucket:
            tokens = tokens[tokens[:, 0].argsort()]
        before = tokens.roll(1, dims=1)
        yield tokens, table[tokens, before % 4]


def save(folder: Path, step: int, model: nn.Module, optimizer: Any, args: argparse.Namespace) -> None:
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    target = folder / f"step-{step:06}.pt"
    with ServerFile(target, args.server_mb_s) as file:
        torch.save(state, file)
    for old in sorted(folder.glob("*.pt"))[: -args.keep]:
        old.unlink()


def train(args: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Tagger(args.width, args.dropout).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, fused=bool(args.fused))
    batches = make_batches(args.batch_size, bool(args.bucket))
    end, running = math.inf, 0.0
    for step, (tokens, tags) in enumerate(batches, 1):
        logits = model(tokens.to(device, non_blocking=True))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.to(device).flatten())
        optimizer.zero_grad(set_to_none=bool(args.set_to_none))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
        optimizer.step()
        if args.track_average:
            running = 0.95 * running + 0.05 * loss.item()
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if step % args.save_every == 0:
            save(folder, step, model, optimizer, args)
        if step == args.warmup_steps:
            end = time.monotonic() + args.duration
        if step == args.steps or time.monotonic() >= end:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=32)
    add("--width", type=int, default=96)
    add("--dropout", type=float, default=0.1)
    add("--bucket", type=int, default=0, help="1: sort each batch")
    add("--save_every", type=int, default=5)
    add("--server_mb_s", type=float, default=12.0)
    add("--keep", type=int, default=3, help="checkpoints that stay on the server")
    add("--fused", type=int, default=0, help="1: the fused optimizer")
    add("--set_to_none", type=int, default=1)
    add("--track_average", type=int, default=1, help="1: a running mean of the loss, step by step")
    add("--clip_norm", type=float, default=1.0)
    add("--lr", type=float, default=2e-3)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        train(parse(), Path(place))
