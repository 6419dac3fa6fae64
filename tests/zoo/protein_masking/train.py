"""Trains a protein language model to fill in masked residues.

Sequences come from a sequence bank that several groups share; snapshots of the training go to the
group's archive. Both are processes of their own here, and either takes its time.
"""

from __future__ import annotations

import argparse
import io
import math
import multiprocessing
import socket
import tempfile
import threading
import time
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
MASK, VOCABULARY, LENGTH = len(RESIDUES), len(RESIDUES) + 1, 48
PROTEINS, FAMILIES = 20_000, 4
fork = multiprocessing.get_context("fork")


def residues_of(accession: int) -> str:
    """A protein of its family: the family's motif over and over, with mutations."""
    motif = np.random.default_rng(accession % FAMILIES).integers(0, len(RESIDUES), 8)
    rng = np.random.default_rng(100 + accession)
    chain = np.tile(motif, LENGTH // 8)
    mutated = rng.random(LENGTH) < 0.05
    chain[mutated] = rng.integers(0, len(RESIDUES), int(mutated.sum()))
    return "".join(RESIDUES[residue] for residue in chain)


def answer(connection: Connection, seconds: float) -> None:
    while True:
        try:
            accession = connection.recv()
        except EOFError:
            return
        time.sleep(seconds)
        connection.send(residues_of(accession))


def serve_bank(address: str, seconds: float, ready: threading.Event) -> None:
    with Listener(address, "AF_UNIX", backlog=16) as listener:
        ready.set()
        while True:
            threading.Thread(target=answer, args=(listener.accept(), seconds), daemon=True).start()


def serve_archive(server: socket.socket, mb_s: float) -> None:
    """Takes snapshots in at `mb_s` and confirms each; a snapshot begins with its size, 8 bytes."""
    connection, _ = server.accept()
    while head := connection.recv(8, socket.MSG_WAITALL):
        left = int.from_bytes(head, "big")
        while left:
            part = connection.recv(min(left, 1 << 18))
            left -= len(part)
            time.sleep(len(part) / (mb_s * 1e6))
        connection.sendall(b"k")


class SequenceBank:
    def __init__(self, address: str) -> None:
        self.address = address
        self.connection: Connection | None = None

    def fetch(self, accession: int) -> str:
        if self.connection is None:
            self.connection = Client(self.address, "AF_UNIX")
        self.connection.send(accession)
        return self.connection.recv()


class Proteins(Dataset):
    def __init__(self, bank: SequenceBank, masked: float) -> None:
        self.bank, self.masked = bank, masked
        self.codes = {residue: code for code, residue in enumerate(RESIDUES)}

    def __len__(self) -> int:
        return PROTEINS

    def __getitem__(self, accession: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Residues with some of them masked, and what was there (-100 where nothing is masked).

        A protein's mask is always the same.
        """
        chain = torch.tensor([self.codes[residue] for residue in self.bank.fetch(accession)])
        draws = torch.rand(LENGTH, generator=torch.Generator().manual_seed(accession))
        hidden = draws < self.masked
        return chain.masked_fill(hidden, MASK), chain.masked_fill(~hidden, -100)


class Archive:
    """Keeps snapshots of the training on another machine."""

    def __init__(self, mb_s: float) -> None:
        server = socket.create_server(("127.0.0.1", 0))
        fork.Process(target=serve_archive, args=(server, mb_s), daemon=True).start()
        self.connection = socket.create_connection(server.getsockname())
        server.close()

    def save_snapshot(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        buffer = io.BytesIO()
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
        self.connection.sendall(buffer.tell().to_bytes(8, "big") + buffer.getbuffer())
        self.connection.recv(1)


class ProteinModel(nn.Module):
    def __init__(self, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.place = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decode = nn.Linear(width, len(RESIDUES))

    def forward(self, chains: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encoder(self.embed(chains) + self.place))


def start_bank(folder: Path, seconds: float) -> SequenceBank:
    address, ready = str(folder / "bank.sock"), fork.Event()
    fork.Process(target=serve_bank, args=(address, seconds, ready), daemon=True).start()
    ready.wait()
    return SequenceBank(address)


def train(args: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    archive = Archive(args.archive_mb_s)
    proteins = Proteins(start_bank(folder, args.bank_s), args.masked)
    loader = DataLoader(
        proteins,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.data_workers,
        persistent_workers=args.data_workers > 0,
        pin_memory=bool(args.pin_memory) and device.type == "cuda",
    )
    model = ProteinModel(args.width, args.layers, args.dropout).to(device)
    optimizer = torch.optim.Adam(model.parameters(), args.lr, betas=(0.9, args.beta2), fused=bool(args.fused))
    end = math.inf
    for step, (chains, truth) in enumerate(loader, 1):
        logits = model(chains.to(device))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), truth.to(device).flatten())
        optimizer.zero_grad()
        loss.backward()
        if args.max_norm:
            nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
        optimizer.step()
        if args.log_perplexity and step % 10 == 0:
            print(f"perplexity {loss.exp().item():.2f}", flush=True)
        if step % args.log_steps == 0:
            print(f"step {step} | loss {loss.item():.4f}", flush=True)
        if step % args.snapshot_steps == 0:
            archive.save_snapshot(step, model, optimizer)
        if step == args.warmup_steps:
            end = time.monotonic() + args.duration
        if step >= args.steps or time.monotonic() >= end:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--bank_s", type=float, default=0.004, help="s that the bank takes to find a sequence")
    add("--archive_mb_s", type=float, default=30.0, help="MB/s that the archive takes in")
    add("--data_workers", type=int, default=0)
    add("--pin_memory", type=int, default=0)
    add("--masked", type=float, default=0.15, help="share of residues to fill in")
    add("--width", type=int, default=96)
    add("--layers", type=int, default=2)
    add("--dropout", type=float, default=0.1)
    add("--beta2", type=float, default=0.999)
    add("--fused", type=int, default=0)
    add("--max_norm", type=float, default=1.0)
    add("--lr", type=float, default=3e-3)
    add("--snapshot_steps", type=int, default=5)
    add("--log_steps", type=int, default=5)
    add("--log_perplexity", type=int, default=1)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="proteins_") as where:
        train(parse(), Path(where))
