"""Fine-tunes a heart rhythm classifier on the eighty recordings of one ward."""

from __future__ import annotations

import argparse
import itertools
import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

PATIENTS, LEADS, LENGTH, RATE = 80, 8, 1000, 100
RHYTHMS = ("sinus", "fibrillation", "flutter", "tachycardia")


def simulate_leads(patient: int) -> torch.Tensor:
    """Ten seconds of an electrocardiogram (LEADS, LENGTH) with the rhythm's rate and regularity."""
    g = torch.Generator().manual_seed(patient)
    rhythm = patient % len(RHYTHMS)
    rate, jitter = ((1.1, 0.02), (1.6, 0.3), (2.4, 0.02), (3.2, 0.05))[rhythm]
    gaps = (1 / rate) * (1 + jitter * torch.randn(64, generator=g))
    beats = gaps.cumsum(0)
    t = torch.arange(LENGTH) / RATE
    spikes = torch.exp(-((t[None] - beats[:, None]) ** 2) / (2 * 0.02**2)).sum(0)
    wander = 0.5 * torch.sin(2 * math.pi * 0.2 * t + patient)
    gains = 0.5 + torch.rand(LEADS, 1, generator=g)
    return gains * spikes + wander + 0.1 * torch.randn(LEADS, LENGTH, generator=g)


class WardRecordings(Dataset):
    def __init__(self, remove_wander: bool, shift: bool) -> None:
        self.leads = [simulate_leads(patient) for patient in range(PATIENTS)]
        self.remove_wander = remove_wander
        self.shift = shift

    def __len__(self) -> int:
        return PATIENTS

    def __getitem__(self, patient: int) -> tuple[torch.Tensor, int]:
        signal = self.leads[patient]
        if self.remove_wander:
            padded = F.pad(signal[None], (RATE // 2, RATE // 2), mode="reflect")
            signal = signal - F.avg_pool1d(padded, RATE + 1, stride=1)[0]
        if self.shift:
            signal = signal.roll(int(torch.randint(LENGTH, ())), dims=-1)
        return signal / signal.std(), patient % len(RHYTHMS)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, 9, padding=4)
        self.conv2 = nn.Conv1d(width, width, 9, padding=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.conv2(F.relu(self.conv1(x))))


class RhythmNet(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Conv1d(LEADS, width, 11, stride=5, padding=5)
        self.block1, self.block2 = Block(width), Block(width)
        self.out = nn.Linear(2 * width, len(RHYTHMS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block2(F.max_pool1d(self.block1(F.relu(self.stem(x))), 2))
        return self.out(torch.cat([x.mean(-1), x.amax(-1)], dim=-1))


def build_loader(cfg: argparse.Namespace) -> DataLoader:
    workers = cfg.num_workers
    return DataLoader(
        WardRecordings(bool(cfg.remove_wander), bool(cfg.shift)),
        cfg.batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=bool(cfg.persistent_workers) and workers > 0,
        prefetch_factor=cfg.prefetch_factor if workers else None,
        pin_memory=bool(cfg.pin_memory) and torch.cuda.is_available(),
    )


def fine_tune(cfg: argparse.Namespace) -> None:
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = RhythmNet().to(device)
    optimizer = torch.optim.SGD(
        net.parameters(), cfg.lr, momentum=0.9, nesterov=bool(cfg.nesterov), foreach=bool(cfg.foreach)
    )
    loader = build_loader(cfg)
    global_step, stop = 0, math.inf
    for epoch in itertools.count(1):
        correct = torch.zeros((), device=device)
        for signals, rhythms in loader:
            signals, rhythms = signals.to(device), rhythms.to(device)  # noqa: PLW2901
            logits = net(signals)
            loss = F.cross_entropy(logits, rhythms, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            if cfg.grad_clip:
                nn.utils.clip_grad_norm_(net.parameters(), cfg.grad_clip)
            optimizer.step()
            if cfg.track_accuracy:
                correct += (logits.argmax(-1) == rhythms).sum()
            global_step += 1
            if global_step % cfg.print_freq == 0:
                print(f"epoch {epoch} step {global_step} loss {loss.item():.4f}", flush=True)
            if global_step == cfg.warmup_steps:
                stop = time.monotonic() + cfg.duration
            if global_step >= cfg.steps or time.monotonic() >= stop:
                return
        if cfg.track_accuracy and epoch % 10 == 0:
            print(f"epoch {epoch} accuracy {correct.item() / PATIENTS:.2f}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=8)
    add("--num_workers", type=int, default=2)
    add("--persistent_workers", type=int, default=0)
    add("--prefetch_factor", type=int, default=2)
    add("--pin_memory", type=int, default=0)
    add("--remove_wander", type=int, default=1, help="1: subtract the moving average of a second")
    add("--shift", type=int, default=1, help="1: start each recording at a random moment")
    add("--grad_clip", type=float, default=1.0)
    add("--nesterov", type=int, default=1)
    add("--foreach", type=int, default=0)
    add("--track_accuracy", type=int, default=1)
    add("--lr", type=float, default=0.01)
    add("--print_freq", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    fine_tune(parse())
