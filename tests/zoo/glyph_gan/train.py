"""Trains a generator of glyphs against a critic, and follows how the two of them stand."""

from __future__ import annotations

import argparse
import math
import time
from collections import deque

import torch
from torch import Tensor, nn

SIDE, GLYPHS, NOISE = 32, 4096, 32


def draw_glyphs(seed: int) -> Tensor:
    """Strokes between random points, from -1 to 1: (GLYPHS, 1, SIDE, SIDE)."""
    generator = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, SIDE)
    pixels = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), dim=-1)[None]
    drawn = torch.full((GLYPHS, SIDE, SIDE), -1.0)
    for _ in range(3):
        here, there = 1.6 * torch.rand(2, GLYPHS, 1, 1, 2, generator=generator) - 0.8
        along = there - here
        share = ((pixels - here) * along).sum(-1) / along.square().sum(-1).clamp(min=1e-4)
        nearest = here + share.clamp(0, 1)[..., None] * along
        away = (pixels - nearest).norm(dim=-1)
        drawn = torch.maximum(drawn, 1 - (away / 0.06).clamp(max=2))
    return drawn[:, None]


def make_generator(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(NOISE, 4 * channels * 16), nn.Unflatten(1, (4 * channels, 4, 4)), nn.ReLU(),
        nn.ConvTranspose2d(4 * channels, 2 * channels, 4, 2, 1), nn.BatchNorm2d(2 * channels), nn.ReLU(),
        nn.ConvTranspose2d(2 * channels, channels, 4, 2, 1), nn.BatchNorm2d(channels), nn.ReLU(),
        nn.ConvTranspose2d(channels, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip


def make_critic(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, channels, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(channels, 2 * channels, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * channels, 4 * channels, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(4 * channels * 16, 1),
    )  # fmt: skip


class Meters:
    """Means of figures over the last hundred steps, read step by step or when they are asked for."""

    def __init__(self, read: str) -> None:
        self.read = read
        self.values: dict[str, deque] = {}

    def update(self, **figures: Tensor) -> None:
        for name, figure in figures.items():
            value = figure.item() if self.read == "step" else figure.detach()
            self.values.setdefault(name, deque(maxlen=100)).append(value)

    def mean(self, name: str) -> float:
        seen = self.values[name]
        return sum(seen) / len(seen) if self.read == "step" else torch.stack(list(seen)).mean().item()


class Adversaries:
    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        self.generator = make_generator(args.channels).to(device)
        self.critic = make_critic(args.channels).to(device)
        made = {"betas": (0.5, 0.99), "foreach": bool(args.foreach)}
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters(), args.lr, **made)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), args.lr, **made)
        self.meters = Meters(args.read_meters)

    def noise(self, number: int) -> Tensor:
        return torch.randn(number, NOISE, device=self.device)

    def watch(self, player: str, network: nn.Module) -> None:
        """How large weights and gradients are, parameter by parameter."""
        for name, parameter in network.named_parameters():
            weight, gradient = parameter.detach().norm(), parameter.grad.norm()
            self.meters.update(**{f"{player}.{name}.weight": weight, f"{player}.{name}.gradient": gradient})

    def train_critic(self, real: Tensor) -> None:
        with torch.no_grad():
            fake = self.generator(self.noise(len(real)))
        on_real, on_fake = self.critic(real), self.critic(fake)
        loss = torch.relu(1 - on_real).mean() + torch.relu(1 + on_fake).mean()
        self.meters.update(critic=loss, on_real=on_real.mean(), on_fake=on_fake.mean())
        self.critic_optimizer.zero_grad(set_to_none=bool(self.args.set_to_none))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.critic.parameters(), self.args.clip_norm)
        self.meters.update(critic_norm=norm)
        self.watch("critic", self.critic)
        self.critic_optimizer.step()

    def train_generator(self, real: Tensor) -> Tensor:
        """Fools the critic, and keeps to the ink of real glyphs; what it lost."""
        fake = self.generator(self.noise(len(real)))
        fooled = -self.critic(fake).mean()
        ink = (fake.mean(dim=0) - real.mean(dim=0)).abs().mean()
        self.meters.update(fooled=fooled, ink=ink, contrast=fake.std())
        loss = self.args.fool_weight * fooled + 5 * ink
        self.generator_optimizer.zero_grad(set_to_none=bool(self.args.set_to_none))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.generator.parameters(), self.args.clip_norm)
        self.meters.update(generator_norm=norm, loss=loss)
        self.watch("generator", self.generator)
        self.generator_optimizer.step()
        return loss


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = bool(args.cudnn_benchmark)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    glyphs = draw_glyphs(args.seed)
    if args.glyphs_on_device:
        glyphs = glyphs.to(device)
    adversaries, stop = Adversaries(args, device), math.inf
    number = args.batch_size if device.type == "cuda" else min(8, args.batch_size)
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, GLYPHS, (number,), device=glyphs.device)
        real = glyphs[rows].to(device)
        for _ in range(args.critic_updates):
            adversaries.train_critic(real)
        adversaries.train_generator(real)
        if step % args.log_every == 0:
            mean = adversaries.meters.mean
            print(f"step: {step} loss: {mean('loss'):.4f} critic: {mean('critic'):.4f}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=1024, help="8 where there is no GPU")
    add("--channels", type=int, default=64)
    add("--critic_updates", type=int, default=2, help="for each one of the generator")
    add("--fool_weight", type=float, default=0.05)
    add("--read_meters", choices=["step", "print"], default="step", help="when figures come to the host")
    add("--glyphs_on_device", type=int, default=1)
    add("--cudnn_benchmark", type=int, default=0)
    add("--foreach", type=int, default=1, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=10.0)
    add("--lr", type=float, default=2e-4)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
