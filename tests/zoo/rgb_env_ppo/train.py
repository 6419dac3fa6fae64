"""Trains a ConvLSTM policy by PPO on a board game that it sees as an RGB image drawn with Pillow."""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn
from torch.distributions import Categorical, Distribution

BOARD, VIEW = 16, 32
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))
COLOURS = ("red", "blue", "orange", "purple")


class BoardGame:
    """Robots slide on a board with walls; the first should come to the star. Drawn, then resized to VIEW."""

    def __init__(self, seed: int, args: argparse.Namespace) -> None:
        self.rng = np.random.default_rng(seed)
        self.pixels = args.render_size
        self.resample = Image.Resampling[args.resample.upper()]
        self.walls = {tuple(place) for place in self.rng.integers(0, BOARD, (30, 2)).tolist()}
        self.reset()

    def reset(self) -> None:
        self.robots = self.rng.integers(0, BOARD, (4, 2)).tolist()
        self.target = self.rng.integers(0, BOARD, 2).tolist()
        self.ticks = 0

    def step(self, move: int) -> tuple[float, bool]:
        before = self.distance()
        place = [a + b for a, b in zip(self.robots[0], MOVES[move], strict=True)]
        if min(place) >= 0 and max(place) < BOARD and tuple(place) not in self.walls:
            self.robots[0] = place
        self.ticks += 1
        done = self.distance() == 0 or self.ticks == 40
        reward = 0.2 * (before - self.distance()) - 0.5
        if done:
            self.reset()
        return reward, done

    def distance(self) -> int:
        return sum(abs(a - b) for a, b in zip(self.robots[0], self.target, strict=True))

    def observe(self) -> np.ndarray:
        """The board as (VIEW, VIEW, 3) bytes."""
        image = self.render()
        if self.pixels != VIEW:
            image = image.resize((VIEW, VIEW), self.resample)
        return np.asarray(image)

    def render(self) -> Image.Image:
        image = Image.new("RGB", (self.pixels, self.pixels), "white")
        draw = ImageDraw.Draw(image)
        self.draw_grid(draw)
        self.draw_walls(draw)
        self.draw_robots(draw)
        self.draw_target(draw)
        return image

    def box(self, place: tuple[int, int] | list[int], margin: float = 0.0) -> tuple[float, ...]:
        cell = self.pixels / BOARD
        x, y = (cell * (p + margin) for p in place)
        return x, y, x + cell * (1 - 2 * margin), y + cell * (1 - 2 * margin)

    def draw_grid(self, draw: ImageDraw.ImageDraw) -> None:
        cell = self.pixels / BOARD
        for i in range(BOARD + 1):
            draw.line((i * cell, 0, i * cell, self.pixels), fill="gray")
            draw.line((0, i * cell, self.pixels, i * cell), fill="gray")

    def draw_walls(self, draw: ImageDraw.ImageDraw) -> None:
        for wall in self.walls:
            draw.rectangle(self.box(wall), fill="black")

    def draw_robots(self, draw: ImageDraw.ImageDraw) -> None:
        for robot, colour in zip(self.robots, COLOURS, strict=True):
            draw.ellipse(self.box(robot, 0.1), fill=colour)

    def draw_target(self, draw: ImageDraw.ImageDraw) -> None:
        left, top, right, _ = self.box(self.target)
        x, y, radius = (left + right) / 2, top + (right - left) / 2, (right - left) / 2
        angles = [math.pi * i / 5 for i in range(10)]
        radii = [radius if i % 2 else radius / 2 for i in range(10)]
        star = [(x + r * math.cos(a), y + r * math.sin(a)) for a, r in zip(angles, radii, strict=True)]
        draw.polygon(star, fill="green")


class ConvLstmPolicy(nn.Module):
    """A convolutional LSTM over what was seen, pooled, with heads for the move and the value."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.encoder = nn.Sequential(nn.Conv2d(3, channels, 4, stride=4), nn.ReLU())
        self.gates = nn.Conv2d(2 * channels, 4 * channels, 3, padding=1)
        self.move, self.value = nn.Linear(16 * channels, len(MOVES)), nn.Linear(16 * channels, 1)

    def start(self, number: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        side = VIEW // 4
        return tuple(torch.zeros(number, self.channels, side, side, device=device) for _ in "hc")

    def forward(self, seen: torch.Tensor, state: tuple) -> tuple[Categorical, torch.Tensor, tuple]:
        hidden, cell = state
        encoded = self.encoder(seen.permute(0, 3, 1, 2).float() / 255)
        forget, keep, out, new = self.gates(torch.cat([encoded, hidden], 1)).chunk(4, 1)
        cell = forget.sigmoid() * cell + keep.sigmoid() * new.tanh()
        hidden = out.sigmoid() * cell.tanh()
        pooled = nn.functional.adaptive_avg_pool2d(hidden, 4).flatten(1)
        return Categorical(logits=self.move(pooled)), self.value(pooled)[:, 0], (hidden, cell)


def rollout(policy: ConvLstmPolicy, games: list[BoardGame], state: tuple, args: argparse.Namespace) -> tuple:
    """`horizon` moves in all games: seen, moves, their log-probabilities, returns; and the state after."""
    seen, moves, logs, rewards, dones = [], [], [], [], []
    with torch.no_grad():
        for _ in range(args.horizon):
            seen.append(torch.from_numpy(np.stack([game.observe() for game in games])).to(state[0].device))
            policy_now, _, state = policy(seen[-1], state)
            moves.append(policy_now.sample())
            logs.append(policy_now.log_prob(moves[-1]))
            results = [game.step(move) for game, move in zip(games, moves[-1].tolist(), strict=True)]
            rewards.append([reward for reward, _ in results])
            dones.append([done for _, done in results])
        last = policy(seen[-1], state)[1]
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
        last = torch.tensor(reward).to(last) + 0.7 * last * (1 - torch.tensor(done).to(last))
        returns.insert(0, last)
    return (torch.stack(seen), torch.stack(moves), torch.stack(logs), torch.stack(returns)), state


def update(policy: ConvLstmPolicy, batch: tuple, state: tuple, args: argparse.Namespace) -> torch.Tensor:
    """PPO's loss over a rollout that starts at `state`."""
    losses = []
    for seen, moves, old, returns in zip(*batch, strict=True):
        policy_now, values, state = policy(seen, state)
        advantages = returns - values.detach()
        ratio = (policy_now.log_prob(moves) - old).exp()
        clipped = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        loss = nn.functional.mse_loss(values, returns) - 0.1 * clipped.mean()
        losses.append(loss - args.entropy * policy_now.entropy().mean())
    return torch.stack(losses).mean()


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    Distribution.set_default_validate_args(bool(args.validate_args))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    games = [BoardGame(seed, args) for seed in range(args.num_envs)]
    policy = ConvLstmPolicy(args.channels).to(device)
    optimizer = torch.optim.Adam(policy.parameters(), args.lr, foreach=bool(args.foreach))
    state, end = policy.start(args.num_envs, device), math.inf
    for step in range(1, args.steps + 1):
        batch, after = rollout(policy, games, state, args)
        for _ in range(args.epochs):
            loss = update(policy, batch, state, args)
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), args.clip_norm)
            optimizer.step()
        state = after
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            end = time.monotonic() + args.duration
        if time.monotonic() >= end:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--num_envs", type=int, default=8)
    add("--horizon", type=int, default=5)
    add("--render_size", type=int, default=512, help="pixels of the board's side when it is drawn")
    add("--resample", choices=["bilinear", "bicubic", "lanczos"], default="bilinear")
    add("--epochs", type=int, default=1)
    add("--channels", type=int, default=8)
    add("--entropy", type=float, default=0.01)
    add("--validate_args", type=int, default=1, help="0: distributions take their arguments as they are")
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=1)
    add("--clip_norm", type=float, default=1.0)
    add("--lr", type=float, default=3e-4)
    add("--log_every", type=int, default=2)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
