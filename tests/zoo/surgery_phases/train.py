"""Recognises the phase of an operation in single frames, drawn at random from recorded videos.

The videos are stored as the endoscope's recorder writes them: now and then a whole frame, in between only
what changed since the frame before, run by run. The network sees every second row and column.
"""

from __future__ import annotations

import argparse
import math
import struct
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

OPERATIONS, FRAMES, PHASES = 4, 192, 6
HEIGHT, WIDTH = 192, 256


def film(operation: int) -> np.ndarray:
    """Frames (FRAMES, HEIGHT, WIDTH, 3): noisy tissue, and an instrument that differs from phase to phase."""
    rng = np.random.default_rng(operation)
    tissue = np.kron(rng.integers(60, 160, (12, 16, 3)), np.ones((16, 16, 1)))
    tissue = (tissue * [1.0, 0.5, 0.5]).astype(np.uint8)
    frames = np.repeat(tissue[None], FRAMES, axis=0)
    tip = np.array([HEIGHT / 2, WIDTH / 2])
    for at, frame in enumerate(frames):
        phase = phase_of(at)
        tip = np.clip(tip + rng.normal(0, 4, 2), 40, [HEIGHT - 40, WIDTH - 40])
        (y, x), reach = tip.astype(int), 12 + 4 * phase
        frame[y - reach : y + reach, x - 8 : x + 8] = (200, 255 - 40 * phase, 40 * phase)
        frame.reshape(-1)[rng.integers(0, frame.size, frame.size // 32)] += 9
    return frames


def phase_of(frame: int) -> int:
    return frame * PHASES // FRAMES


def encode_runs(flat: np.ndarray) -> bytes:
    """Lengths (uint32) and values (uint8) of the runs of equal bytes."""
    edges = np.flatnonzero(np.diff(flat)) + 1
    starts = np.concatenate([[0], edges])
    lengths = np.diff(np.concatenate([starts, [flat.size]]))
    return struct.pack("<I", len(starts)) + lengths.astype("<u4").tobytes() + flat[starts].tobytes()


def decode_runs(packet: bytes) -> np.ndarray:
    (runs,) = struct.unpack_from("<I", packet)
    lengths = np.frombuffer(packet, "<u4", runs, 4)
    values = np.frombuffer(packet, np.uint8, runs, 4 + 4 * runs)
    return np.repeat(values, lengths)


class Packet(NamedTuple):
    offset: int
    size: int
    whole: bool


def record(path: Path, frames: np.ndarray, key_interval: int) -> list[Packet]:
    """Writes the video and returns its index."""
    index, before = [], np.zeros(frames[0].size, np.uint8)
    with path.open("wb") as out:
        for at, frame in enumerate(frames):
            flat, whole = frame.reshape(-1), at % key_interval == 0
            packet = encode_runs(flat if whole else flat - before)
            index.append(Packet(out.tell(), len(packet), whole))
            out.write(packet)
            before = flat
    return index


class VideoReader:
    def __init__(self, path: Path, index: list[Packet]) -> None:
        self.path, self.index = path, index
        self.file = None

    def read_packet(self, at: int) -> bytes:
        if self.file is None:
            self.file = self.path.open("rb")
        self.file.seek(self.index[at].offset)
        return self.file.read(self.index[at].size)

    def decode_frame(self, at: int) -> np.ndarray:
        """Frame `at`; decoding starts at the last whole frame before it."""
        start = max(i for i in range(at + 1) if self.index[i].whole)
        flat = decode_runs(self.read_packet(start)).copy()
        for i in range(start + 1, at + 1):
            flat += decode_runs(self.read_packet(i))
        return flat.reshape(HEIGHT, WIDTH, 3)


class SurgeryFrames(Dataset):
    def __init__(self, videos: list[VideoReader], mirror: bool, as_float: bool) -> None:
        self.videos = videos
        self.mirror = mirror
        self.as_float = as_float

    def __len__(self) -> int:
        return len(self.videos) * FRAMES

    def __getitem__(self, item: int) -> tuple[torch.Tensor, int]:
        video, at = divmod(item, FRAMES)
        frame = torch.from_numpy(self.videos[video].decode_frame(at)[::2, ::2]).permute(2, 0, 1)
        if self.mirror and torch.rand(()) < 0.5:
            frame = frame.flip(-1)
        return frame.float() / 255 if self.as_float else frame.contiguous(), phase_of(at)


class PhaseNet(nn.Module):
    def __init__(self, channels: tuple[int, ...] = (8, 32, 48)) -> None:
        super().__init__()
        convs, inputs = [], 3
        for outputs in channels:
            convs += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        self.features = nn.Sequential(*convs)
        self.classifier = nn.Linear(inputs * 2, PHASES)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        maps = self.features(frames).flatten(2)
        return self.classifier(torch.cat([maps.mean(-1), maps.amax(-1)], dim=1))


def open_videos(folder: Path, key_interval: int) -> list[VideoReader]:
    videos = []
    for operation in range(OPERATIONS):
        path = folder / f"operation_{operation}.vid"
        videos.append(VideoReader(path, record(path, film(operation), key_interval)))
    return videos


def batches(loader: DataLoader):
    """Epoch after epoch."""
    while True:
        yield from loader


def train(args: argparse.Namespace, folder: Path) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    frames = SurgeryFrames(open_videos(folder, args.key_interval), bool(args.mirror), bool(args.float_frames))
    loader = DataLoader(
        frames,
        args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        prefetch_factor=args.prefetch_factor,
        persistent_workers=True,
        pin_memory=bool(args.pin_memory) and device.type == "cuda",
    )
    model = PhaseNet().to(device)
    model = model.to(memory_format=torch.channels_last if args.channels_last else torch.contiguous_format)
    opt = optim.RMSprop(model.parameters(), lr=args.lr, foreach=bool(args.foreach))
    schedule = optim.lr_scheduler.ExponentialLR(opt, 0.9995)
    weights = torch.ones(PHASES, device=device) if args.class_weights else None
    stop = math.inf
    for step, (images, phases) in enumerate(batches(loader), start=1):
        inputs = images.to(device, non_blocking=True)
        if not args.float_frames:
            inputs = inputs.float() / 255
        loss = nn.functional.cross_entropy(model(inputs), phases.to(device), weight=weights)
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
        if step % args.display == 0:
            rate = schedule.get_last_lr()[0]
            print(f"Iteration {step}, loss = {loss.item():.4f}, lr = {rate:.2e}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if step >= args.steps or time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=12)
    add("--key_interval", type=int, default=48, help="every how many frames the recorder writes a whole one")
    add("--num_workers", type=int, default=2)
    add("--prefetch_factor", type=int, default=2)
    add("--pin_memory", type=int, default=0)
    add("--mirror", type=int, default=1, help="1: mirror every second frame")
    add("--float_frames", type=int, default=1, help="1: workers hand over floats, 0: bytes")
    add("--channels_last", type=int, default=0)
    add("--class_weights", type=int, default=1)
    add("--foreach", type=int, default=0)
    add("--lr", type=float, default=1e-3)
    add("--display", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="surgery_") as place:
        train(arguments, Path(place))
