"""Trains a small action-chunking transformer on images of a robot arm: `act`, or `act_relative_rtc`.

`act_relative_rtc` predicts actions relative to the state, and gets two images a sample, the earlier of
which it does not use.
"""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FRAMES, SIDE, STATE, CHUNK, WIDTH = 512, 64, 6, 8, 128


class Episode(Dataset):
    """Camera frames in memory, with the arm's state and the next CHUNK actions."""

    def __init__(self, frames: int) -> None:
        generator = torch.Generator().manual_seed(5)
        at = torch.linspace(0, 40, FRAMES + CHUNK)[:, None]
        self.path = torch.sin(at * torch.rand(STATE, generator=generator) + torch.arange(STATE))
        basis = torch.randn(STATE, 3, 8, 8, generator=generator)
        scene = torch.einsum("ts,schw->tchw", self.path[:FRAMES], basis)
        noise = 20 * torch.randn(FRAMES, 3, SIDE, SIDE, generator=generator)
        self.images = (128 + 40 * nn.functional.interpolate(scene, SIDE) + noise).clamp(0, 255).byte()
        self.frames = frames

    def __len__(self) -> int:
        return FRAMES

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        images = self.images[index]
        if self.frames > 1:
            images = torch.stack([self.images[max(0, index - 1)], images])
        return {"images": images, "state": self.path[index], "actions": self.path[index + 1 :][:CHUNK]}


def position_value(place: int, channel: int) -> float:
    """Sines in even channels, cosines in odd ones, slower from pair to pair."""
    angle = place / math.pow(10000, 2 * (channel // 2) / WIDTH)
    return math.sin(angle) if channel % 2 == 0 else math.cos(angle)


class Act(nn.Module):
    """Image and state tokens through an encoder; one query for each action of the chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=4, padding=2), nn.ReLU(), nn.Conv2d(16, WIDTH, 3, stride=2, padding=1)
        )
        self.state_token = nn.Linear(STATE, WIDTH)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 4, WIDTH, dropout=0.0, batch_first=True)
        self.queries = nn.Parameter(torch.randn(CHUNK, WIDTH) * 0.1)
        self.decoder = nn.TransformerDecoderLayer(WIDTH, 4, WIDTH, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, STATE)
        self.register_buffer("positions", self.position_table(65), persistent=False)

    def position_table(self, tokens: int) -> torch.Tensor:
        """Sines and cosines of each token's row and column in the image, shape (tokens, WIDTH)."""
        table = []
        for token in range(tokens):
            row, column = divmod(token, 8)
            table.append([position_value(row, i) + position_value(column, i) for i in range(WIDTH)])
        return torch.tensor(table)

    def embed_positions(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.positions[: tokens.shape[1]]

    def forward(self, images: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        patches = self.backbone(images.float() / 255 - 0.5).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.state_token(state)[:, None], patches], dim=1)
        memory = self.encoder(tokens + self.embed_positions(tokens))
        queries = self.queries.expand(len(images), -1, -1)
        return self.head(self.decoder(queries, memory + self.embed_positions(memory)))


class ActRelativeRtc(Act):
    """Act on actions relative to the state, normalised by `relative_std`."""

    def __init__(self, cache_positions: bool, check_stats: bool) -> None:
        super().__init__()
        self.cache_positions = cache_positions
        self.check_stats = check_stats
        self.register_buffer("relative_std", torch.full((STATE,), 0.3))

    @property
    def has_relative_stats(self) -> bool:
        return not self.check_stats or bool((self.relative_std > 0).all().item())

    def embed_positions(self, tokens: torch.Tensor) -> torch.Tensor:
        if self.cache_positions:
            return super().embed_positions(tokens)
        return self.position_table(tokens.shape[1]).to(tokens.device)

    def forward(self, images: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        images = images[:, -1] if images.dim() == 5 else images
        relative = super().forward(images, state)
        if self.has_relative_stats:
            relative = relative * self.relative_std
        return state[:, None] + relative


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    plain = args.policy == "act"
    policy = Act() if plain else ActRelativeRtc(bool(args.cache_positions), bool(args.check_stats))
    policy.to(device)
    loader = DataLoader(
        Episode(1 if plain else args.frames),
        args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
        pin_memory=bool(args.pin_memory) and device.type == "cuda",
    )
    optimizer = torch.optim.AdamW(policy.parameters(), args.lr, foreach=bool(args.foreach))
    end, step = math.inf, 0
    while step < args.steps and time.monotonic() < end:
        for batch in loader:
            step += 1
            images, state, actions = (
                batch[name].to(device, non_blocking=True) for name in ("images", "state", "actions")
            )
            loss = nn.functional.l1_loss(policy(images, state), actions)
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), args.clip_norm)
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
    add("--policy", choices=["act", "act_relative_rtc"], default="act_relative_rtc")
    add("--frames", type=int, default=2, help="images a sample, of which the last is used")
    add("--cache_positions", type=int, default=0, help="1: make the table of positions once")
    add("--check_stats", type=int, default=1, help="1: look at each forward whether there are statistics")
    add("--batch_size", type=int, default=8)
    add("--num_workers", type=int, default=0)
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=1)
    add("--clip_norm", type=float, default=10.0)
    add("--lr", type=float, default=3e-4)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
