"""Finds the stiffness and the damping of a cloth from how it was seen to move, through a simulation."""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import Tensor, nn

ROWS = 12
GRAVITY, DT = -9.8, 0.02


def springs() -> Tensor:
    """Neighbours along rows and columns, and across: (2, springs)."""
    found = []
    for r in range(ROWS):
        for c in range(ROWS):
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if r + dr < ROWS and 0 <= c + dc < ROWS:
                    found.append((r * ROWS + c, (r + dr) * ROWS + c + dc))
    return torch.tensor(found).T


class Cloth(nn.Module):
    """Masses on springs, held at two corners; what is learnt are a stiffness a spring, and the damping."""

    def __init__(self, substeps: int, wind: float) -> None:
        super().__init__()
        self.substeps, self.wind = substeps, wind
        axis = torch.linspace(-1, 1, ROWS)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        self.register_buffer("start", torch.stack([x, y, torch.zeros_like(x)], dim=-1).view(-1, 3))
        self.register_buffer("ends", springs())
        held = torch.ones(ROWS * ROWS, 1)
        held[[-1, -ROWS]] = 0
        self.register_buffer("free", held)
        lengths = (self.start[self.ends[0]] - self.start[self.ends[1]]).norm(dim=1)
        self.register_buffer("rest", lengths)
        self.register_buffer("down", torch.tensor([0.0, 0.0, GRAVITY]))
        self.stiffness = nn.Parameter(torch.zeros(len(lengths)))
        self.damping = nn.Parameter(torch.zeros(()))

    def forces(self, positions: Tensor, velocities: Tensor) -> Tensor:
        here, there = self.ends
        apart = positions[:, there] - positions[:, here]
        length = apart.norm(dim=-1, keepdim=True) + 1e-4
        stretch = (length - self.rest[:, None]) / length
        pull = 40 * torch.exp(self.stiffness)[:, None] * stretch * apart
        total = torch.zeros_like(positions).index_add(1, here, pull).index_add(1, there, -pull)
        return total + self.down - torch.exp(self.damping) * velocities

    def forward(self, velocities: Tensor) -> Tensor:
        """Positions after the simulation, from (batch, masses, 3) velocities at its beginning."""
        positions = self.start.expand_as(velocities)
        for _ in range(self.substeps):
            pushed = self.forces(positions, velocities)
            if self.wind:
                pushed = pushed + self.wind * torch.sin(positions)
            velocities = (velocities + DT * pushed) * self.free
            positions = positions + DT * velocities
        return positions


def adam(cloth: Cloth, args: argparse.Namespace, device: torch.device) -> torch.optim.Optimizer:
    graphed = bool(args.cuda_graph) and device.type == "cuda"
    return torch.optim.Adam(cloth.parameters(), args.lr, foreach=bool(args.foreach), capturable=graphed)


class Update:
    """One step of the identification. On CUDA it can be recorded once and replayed as a whole."""

    def __init__(self, cloth: Cloth, args: argparse.Namespace, device: torch.device) -> None:
        self.cloth, self.args = cloth, args
        self.optimizer = adam(cloth, args, device)
        self.pushes = torch.zeros(args.batch_size, ROWS * ROWS, 3, device=device)
        self.seen = torch.zeros_like(self.pushes)
        self.loss = torch.zeros((), device=device)
        self.graph = self.record() if args.cuda_graph and device.type == "cuda" else None

    def compute(self) -> None:
        self.optimizer.zero_grad(set_to_none=self.graph is None and bool(self.args.set_to_none))
        error = self.cloth(self.pushes) - self.seen
        loss = error.square().sum(dim=-1).mean() + self.args.prior * self.cloth.stiffness.square().mean()
        loss.backward()
        self.optimizer.step()
        self.loss.copy_(loss.detach())

    def record(self) -> torch.cuda.CUDAGraph:
        """Recording needs a few steps on a side stream first; what they learnt is taken back."""
        self.graph = torch.cuda.CUDAGraph()
        state = [parameter.detach().clone() for parameter in self.cloth.parameters()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(self.graph):
            self.compute()
        with torch.no_grad():
            for parameter, before in zip(self.cloth.parameters(), state, strict=True):
                parameter.copy_(before)
            for moments in self.optimizer.state.values():
                for moment in moments.values():
                    moment.zero_()
        return self.graph

    def __call__(self, pushes: Tensor, seen: Tensor) -> Tensor:
        self.pushes.copy_(pushes)
        self.seen.copy_(seen)
        if self.graph:
            self.graph.replay()
        else:
            self.compute()
        return self.loss


@torch.no_grad()
def observe(args: argparse.Namespace, device: torch.device, number: int) -> tuple[Tensor, Tensor]:
    """Pushes, and where a cloth whose parameters are to be found ended up."""
    generator = torch.Generator().manual_seed(args.seed)
    real = Cloth(args.substeps, args.wind)
    real.stiffness += 0.5 + 0.3 * torch.randn(real.stiffness.shape, generator=generator)
    real.damping += 0.7
    pushes = 2 * torch.randn(number, ROWS * ROWS, 3, generator=generator)
    seen = real(pushes)
    return pushes.to(device), (seen + 0.002 * torch.randn(seen.shape, generator=generator)).to(device)


def identify(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pushes, seen = observe(args, device, 64)
    update = Update(Cloth(args.substeps, args.wind).to(device), args, device)
    stop = math.inf
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, len(pushes), (args.batch_size,), device=device)
        loss = update(pushes[rows], seen[rows])
        if args.check_finite and step % 10 == 0 and not math.isfinite(loss.item()):
            raise SystemExit(f"the simulation blew up in step {step}")
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.5f}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=8)
    add("--substeps", type=int, default=40, help="of the simulation")
    add("--wind", type=float, default=0.5, help="0: still air")
    add("--prior", type=float, default=1e-3, help="how strongly stiffness keeps near one")
    add("--cuda_graph", type=int, default=0, help="1: record a step once, and replay it")
    add("--check_finite", type=int, default=1, help="1: stop when the simulation blows up")
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--lr", type=float, default=0.02)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    identify(parse())
