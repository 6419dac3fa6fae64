"""Runs a flow-matching policy on a simulated arm by real-time chunking: inference only, no training.

A new chunk of actions is computed while the arm still acts on the one before. Guidance pulls the new chunk
to what is left of the old one: `vjp` by the gradient through the denoiser, `direct` by the error itself.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import deque

import torch
from torch import nn

ACTIONS, CHUNK, SIDE = 6, 32, 96


class Denoiser(nn.Module):
    """The velocity of a noisy chunk, given the encoded observation and the time of the flow."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, width),
        )  # fmt: skip
        self.embed = nn.Linear(ACTIONS + 1, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, ACTIONS)

    def forward(self, chunk: torch.Tensor, context: torch.Tensor, at: float) -> torch.Tensor:
        time_column = torch.full_like(chunk[..., :1], at)
        tokens = self.embed(torch.cat([chunk, time_column], dim=-1)) + context[:, None]
        return self.head(self.layers(tokens))


class ChunkPolicy:
    """Denoises a chunk in `steps` steps; `leftover` are the actions that should be kept to at its start."""

    def __init__(self, model: Denoiser, args: argparse.Namespace, device: torch.device) -> None:
        self.model = model
        self.args = args
        self.noise = torch.randn(1, CHUNK, ACTIONS, device=device)

    def predict(self, image: torch.Tensor, leftover: torch.Tensor | None) -> torch.Tensor:
        with torch.no_grad():
            context = self.model.encoder(image)
        chunk, dt = self.noise, 1 / self.args.denoising_steps
        for i in range(self.args.denoising_steps):
            guided = leftover is not None and self.args.guidance_weight > 0
            if guided:
                velocity = self.guide(chunk, context, i * dt, leftover)
            else:
                velocity = self.plain(chunk, context, i * dt)
            chunk = chunk + dt * velocity
        return chunk

    @torch.no_grad()
    def plain(self, chunk: torch.Tensor, context: torch.Tensor, at: float) -> torch.Tensor:
        return self.model(chunk, context, at)

    def guide(
        self, chunk: torch.Tensor, context: torch.Tensor, at: float, leftover: torch.Tensor
    ) -> torch.Tensor:
        """The velocity, corrected for how far the chunk's estimated end is from `leftover`."""
        known = leftover.shape[1]
        weights = torch.linspace(1, 0, known, device=chunk.device)[None, :, None]
        with torch.set_grad_enabled(self.args.guidance == "vjp"):
            chunk = chunk.detach().requires_grad_(self.args.guidance == "vjp")
            velocity = self.model(chunk, context, at)
            ending = chunk + (1 - at) * velocity
            error = torch.zeros_like(chunk)
            error[:, :known] = weights * (leftover - ending[:, :known]).detach()
            if self.args.guidance == "vjp":
                (error,) = torch.autograd.grad(ending, chunk, error)
        return (velocity + self.args.guidance_weight * error).detach()


class ActionQueue:
    """Actions to come; `merge` replaces them by a new chunk, less what was acted on meanwhile."""

    def __init__(self, copy: bool) -> None:
        self.actions: deque[torch.Tensor] = deque()
        self.copy = copy

    def leftover(self) -> torch.Tensor | None:
        return torch.stack(list(self.actions))[None] if self.actions else None

    def merge(self, chunk: torch.Tensor, delay: int) -> None:
        self.actions = deque(a.clone() if self.copy else a for a in chunk[0, delay:])


class Arm:
    """A simulated arm: sees itself in an image, and moves by what it is told."""

    def __init__(self, device: torch.device) -> None:
        self.position = torch.zeros(ACTIONS, device=device)
        self.basis = torch.randn(ACTIONS, 3, SIDE, SIDE, device=device)

    def get_observation(self) -> torch.Tensor:
        return torch.tensordot(self.position, self.basis, dims=1)[None]

    def send_action(self, action: torch.Tensor) -> None:
        self.position = (0.9 * self.position + 0.1 * action).clamp(-2, 2)


def infer(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Denoiser(args.width).to(device).eval()
    if args.channels_last:
        model.encoder.to(memory_format=torch.channels_last)
    policy = ChunkPolicy(model, args, device)
    arm, queue, end = Arm(device), ActionQueue(bool(args.copy_actions)), math.inf
    for number in range(1, args.requests + 1):
        image = arm.get_observation()
        asked = time.perf_counter()
        chunk = policy.predict(image, queue.leftover())
        queue.merge(chunk, args.inference_delay)
        if args.clamp:
            queue.actions = deque(a.clamp(-3, 3) for a in queue.actions)
        took = time.perf_counter() - asked
        for _ in range(min(args.execution_horizon, len(queue.actions))):
            arm.send_action(queue.actions.popleft())
        if number % args.log_every == 0:
            print(f"request {number} latency: {1000 * took:.2f} ms", flush=True)
        if number == args.warmup_requests:
            end = time.monotonic() + args.duration
        if time.monotonic() >= end:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--rtc.guidance", dest="guidance", choices=["vjp", "direct"], default="vjp")
    add("--rtc.guidance_weight", dest="guidance_weight", type=float, default=1.0, help="0: no guidance")
    add("--rtc.execution_horizon", dest="execution_horizon", type=int, default=12)
    add("--rtc.inference_delay", dest="inference_delay", type=int, default=2)
    add("--denoising_steps", type=int, default=8)
    add("--copy_actions", type=int, default=1, help="1: the queue keeps copies")
    add("--clamp", type=int, default=1, help="1: keep actions within bounds")
    add("--channels_last", type=int, default=0, help="1: the encoder's weights in channels-last order")
    add("--width", type=int, default=128)
    add("--log_every", type=int, default=1)
    add("--duration", type=float, default=math.inf, help="s to run for after the warm-up")
    add("--warmup_requests", type=int, default=10, help="requests before --duration counts")
    add("--requests", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    infer(parse())
