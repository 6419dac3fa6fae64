"""Trains a message-passing network that predicts the energy of molecular conformers."""

from __future__ import annotations

import argparse
import math
import time
from typing import NamedTuple

import torch
from torch import Tensor, nn

CONFORMERS, ATOMS, ELEMENTS = 1024, 48, 5


class Conformers(NamedTuple):
    positions: Tensor
    """(number, ATOMS, 3), in angstrom."""
    elements: Tensor
    energies: Tensor


def sample_conformers(seed: int) -> Conformers:
    """Loose chains of atoms, and what a pair potential says of their energies, normalised."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(CONFORMERS, ATOMS, 3, generator=generator)
    positions = (1.5 * steps / steps.norm(dim=-1, keepdim=True)).cumsum(dim=1)
    elements = torch.randint(0, ELEMENTS, (CONFORMERS, ATOMS), generator=generator)
    charges = torch.linspace(-1, 1, ELEMENTS)[elements]
    apart = torch.cdist(positions, positions) + 3 * torch.eye(ATOMS)
    pairs = charges[:, :, None] * charges[:, None, :] * torch.exp(-apart / 2)
    energies = pairs.sum(dim=(1, 2))
    return Conformers(positions, elements, (energies - energies.mean()) / energies.std())


class GaussianBasis(nn.Module):
    def __init__(self, size: int, cutoff: float) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, cutoff, size))
        self.sharpness = size / cutoff

    def forward(self, distances: Tensor) -> Tensor:
        return torch.exp(-((self.sharpness * (distances[:, None] - self.centres)) ** 2))


class Interaction(nn.Module):
    """Atoms gather what their neighbours send, filtered by the distance between them."""

    def __init__(self, width: int, basis: int) -> None:
        super().__init__()
        self.filters = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, width))
        self.send = nn.Linear(width, width)
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, atoms: Tensor, sources: Tensor, targets: Tensor, basis: Tensor) -> Tensor:
        messages = self.send(atoms)[sources] * self.filters(basis)
        gathered = torch.zeros_like(atoms).index_add(0, targets, messages)
        return atoms + self.update(gathered)


class EnergyNetwork(nn.Module):
    def __init__(self, width: int, depth: int, cutoff: float, neighbours: str) -> None:
        super().__init__()
        self.cutoff = cutoff
        self.neighbours = neighbours
        self.embedding = nn.Embedding(ELEMENTS, width)
        self.basis = GaussianBasis(16, cutoff)
        self.interactions = nn.ModuleList(Interaction(width, 16) for _ in range(depth))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def pairs_within_cutoff(self, positions: Tensor) -> Tensor:
        """Index of both atoms of each pair that is near enough, shape (2, pairs)."""
        if self.neighbours == "matrix":
            near = torch.cdist(positions, positions) < self.cutoff
            near &= ~torch.eye(ATOMS, dtype=torch.bool, device=positions.device)
            molecule, source, target = near.nonzero().unbind(dim=1)
            return torch.stack([molecule * ATOMS + source, molecule * ATOMS + target])
        sources, targets = [], []
        for molecule, atoms in enumerate(positions.tolist()):
            for i, here in enumerate(atoms):
                for j, there in enumerate(atoms):
                    if i != j and math.dist(here, there) < self.cutoff:
                        sources.append(molecule * ATOMS + i)
                        targets.append(molecule * ATOMS + j)
        return torch.tensor([sources, targets], device=positions.device)

    def forward(self, positions: Tensor, elements: Tensor) -> Tensor:
        sources, targets = self.pairs_within_cutoff(positions)
        places = positions.flatten(0, 1)
        basis = self.basis((places[sources] - places[targets]).norm(dim=1))
        atoms = self.embedding(elements).flatten(0, 1)
        for interaction in self.interactions:
            atoms = interaction(atoms, sources, targets, basis)
        return self.readout(atoms).view(len(positions), ATOMS).sum(dim=1)


def fit(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = sample_conformers(args.seed)
    if args.pin_memory and device.type == "cuda":
        data = Conformers(*(part.pin_memory() for part in data))
    network = EnergyNetwork(args.width, args.depth, args.cutoff, args.neighbours).to(device)
    average = torch.optim.swa_utils.AveragedModel(network) if args.average_weights else None
    optimizer = torch.optim.AdamW(network.parameters(), args.lr, foreach=bool(args.foreach))
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9998)
    stop = math.inf
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, CONFORMERS, (args.batch_size,))
        positions, elements, energies = (part[rows].to(device, non_blocking=True) for part in data)
        loss = nn.functional.huber_loss(network(positions, elements), energies)
        optimizer.zero_grad(set_to_none=bool(args.set_to_none))
        loss.backward()
        if args.clip_norm:
            nn.utils.clip_grad_norm_(network.parameters(), args.clip_norm)
        optimizer.step()
        scheduler.step()
        if average and step % 10 == 0:
            average.update_parameters(network)
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f} lr: {scheduler.get_last_lr()[0]:.2e}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--width", type=int, default=32)
    add("--depth", type=int, default=2)
    add("--cutoff", type=float, default=2.5, help="angstrom")
    add("--neighbours", choices=["loop", "matrix"], default="loop", help="how near pairs are found")
    add("--average_weights", type=int, default=1, help="1: keep an average of the weights as well")
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=5.0)
    add("--lr", type=float, default=1e-3)
    add("--log_every", type=int, default=2)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    fit(parse())
