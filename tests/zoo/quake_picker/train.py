"""Classifies earthquake recordings that a data centre sends record by record over one line.

The centre runs as a process of its own and sends what it is asked for at `--line_mb_s`, all connections
together. `--archive=mirror` reads the same records from a copy on this machine.
"""

from __future__ import annotations

import argparse
import math
import socket
import socketserver
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

STATIONS, KINDS, CHANNELS, SAMPLES = 192, 6, 3, 4096
RECORD = CHANNELS * SAMPLES * 4


def synthesise(number: int) -> np.ndarray:
    """A recording (CHANNELS, SAMPLES): ground noise, and a wave train whose frequency tells its kind."""
    rng = np.random.default_rng(number)
    t = np.arange(SAMPLES) / SAMPLES
    onset = rng.uniform(0.1, 0.5)
    envelope = np.where(t > onset, np.exp(-6 * (t - onset)), 0)
    wave = envelope * np.sin(2 * np.pi * (20 + 30 * (number % KINDS)) * t + rng.uniform(0, 6))
    return (2 * wave + rng.normal(0, 0.5, (CHANNELS, SAMPLES))).astype(np.float32)


def write_archive(path: Path) -> None:
    with path.open("wb") as out:
        for number in range(STATIONS):
            out.write(synthesise(number).tobytes())


class Line:
    """What all connections share: a record takes its bytes over the line's rate."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.lock = threading.Lock()

    def occupy(self, size: int) -> None:
        with self.lock:
            time.sleep(size / self.bytes_per_s)


class DataCentre(socketserver.BaseRequestHandler):
    """Answers record numbers (4 bytes) with the record."""

    path: Path
    line: Line

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.path.open("rb") as archive:
            while asked := self.request.recv(4):
                archive.seek(struct.unpack("!I", asked)[0] * RECORD)
                record = archive.read(RECORD)
                self.line.occupy(len(record))
                self.request.sendall(record)


def open_centre(path: Path, line_mb_s: float) -> tuple[str, int]:
    DataCentre.path, DataCentre.line = path, Line(line_mb_s * 1e6)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), DataCentre)
    server.daemon_threads = True
    get_context("fork").Process(target=server.serve_forever, daemon=True).start()
    server.socket.close()
    return server.server_address[:2]


class CentreClient:
    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def download(self, number: int) -> bytearray:
        self.socket.sendall(struct.pack("!I", number))
        record = bytearray(RECORD)
        view, got = memoryview(record), 0
        while got < RECORD:
            size = self.socket.recv_into(view[got:])
            if not size:
                raise ConnectionError(f"the data centre hung up in record {number}")
            got += size
        return record


class Mirror:
    """The archive's copy on this machine."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")

    def download(self, number: int) -> bytearray:
        self.file.seek(number * RECORD)
        return bytearray(self.file.read(RECORD))


class Recordings(IterableDataset):
    """Endless recordings in random order; each worker draws its own."""

    def __init__(self, address: tuple[str, int] | None, path: Path, taper: bool, seed: int) -> None:
        self.address, self.path, self.taper, self.seed = address, path, taper, seed

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        worker = get_worker_info()
        rng = np.random.default_rng([self.seed, worker.id if worker else 0])
        archive = CentreClient(self.address) if self.address else Mirror(self.path)
        window = torch.hann_window(SAMPLES) if self.taper else None
        while True:
            number = int(rng.integers(STATIONS))
            recording = torch.frombuffer(archive.download(number), dtype=torch.float32)
            recording = recording.view(CHANNELS, SAMPLES)
            if window is not None:
                recording = recording * window
            yield recording, number % KINDS


class Picker(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.stem = nn.Conv1d(CHANNELS, width, 15, stride=4, padding=7)
        self.blocks = nn.ModuleList(
            nn.Conv1d(width, width, 7, stride=4 if i % 2 else 1, padding=3) for i in range(4)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(4))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, KINDS)

    def forward(self, recordings: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(recordings))
        for block, norm in zip(self.blocks, self.norms, strict=True):
            x = torch.relu(norm(block(x)))
        return self.head(self.dropout(x.mean(-1)))


def main(args: argparse.Namespace, folder: Path) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    archive = folder / "recordings.bin"
    write_archive(archive)
    address = open_centre(archive, args.line_mb_s) if args.archive == "centre" else None
    loader = DataLoader(
        Recordings(address, archive, bool(args.taper), args.seed),
        batch_size=args.batch,
        num_workers=args.loader_workers,
        prefetch_factor=args.prefetch if args.loader_workers else None,
        pin_memory=bool(args.pin) and device.type == "cuda",
    )
    picker = Picker(args.width, args.dropout).to(device)
    optimizer = torch.optim.Adam(picker.parameters(), lr=args.lr, foreach=bool(args.foreach))
    averaged = {k: v.clone() for k, v in picker.state_dict().items()} if args.ema else {}
    deadline = math.inf
    for step, (recordings, kinds) in enumerate(loader, start=1):
        scores = picker(recordings.to(device, non_blocking=True))
        loss = nn.functional.cross_entropy(scores, kinds.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in picker.state_dict().items() if args.ema else ():
            averaged[name].lerp_(value, 0.01)
        if step % args.print_every == 0:
            print(f"[{step:5d}] loss {loss.item():.4f}", flush=True)
        if step == args.warmup_steps:
            deadline = time.monotonic() + args.duration
        if step == args.steps or time.monotonic() >= deadline:
            return


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--archive", choices=["centre", "mirror"], default="centre", help="where recordings come from")
    add("--line_mb_s", type=float, default=8.0, help="rate of the line to the data centre, in MB/s")
    add("--batch", type=int, default=16)
    add("--loader_workers", type=int, default=2)
    add("--prefetch", type=int, default=2)
    add("--pin", type=int, default=0)
    add("--taper", type=int, default=1, help="1: fade recordings in and out")
    add("--width", type=int, default=32)
    add("--dropout", type=float, default=0.1)
    add("--ema", type=int, default=1, help="1: keep a moving average of the weights")
    add("--foreach", type=int, default=0)
    add("--lr", type=float, default=2e-3)
    add("--print_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="quake_picker_") as scratch:
        main(parse(), Path(scratch))
