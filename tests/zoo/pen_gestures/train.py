"""Trains a recogniser of gestures that are drawn with a pen on a tablet."""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STROKES, AXES, POINTS, GESTURES = 2048, 3, 240, 5


def draw_strokes(seed: int) -> TensorDataset:
    """Circles, waves, spirals, loops and zigzags as a pen moves: (STROKES, POINTS, AXES)."""
    generator = torch.Generator().manual_seed(seed)
    gesture = torch.randint(0, GESTURES, (STROKES,), generator=generator)
    size, turn, speed = torch.rand(3, STROKES, 1, generator=generator)
    at = (0.7 + 0.6 * speed) * torch.linspace(0, 1, POINTS)
    around = 2 * math.pi * (2 * at + turn)
    shapes = [
        (torch.cos(around), torch.sin(around)),
        (4 * at - 2, torch.sin(2 * around)),
        (at * torch.cos(2 * around), at * torch.sin(2 * around)),
        (2 * at + torch.cos(3 * around), torch.sin(3 * around)),
        (4 * at - 2, (8 * at % 2 - 1).abs()),
    ]
    paths = torch.stack([torch.stack(shape, dim=-1) for shape in shapes])[gesture, torch.arange(STROKES)]
    pen = torch.cat([(0.5 + size[..., None]) * paths, 1 - at[..., None]], dim=-1)
    return TensorDataset(pen + 0.05 * torch.randn(pen.shape, generator=generator), gesture)


class RecurrentLayer(nn.Module):
    """A long short-term memory, one point of the stroke after the other."""

    def __init__(self, inputs: int, width: int, forget_bias: float) -> None:
        super().__init__()
        self.width = width
        self.from_input = nn.Linear(inputs, 4 * width)
        self.from_state = nn.Linear(width, 4 * width, bias=False)
        nn.init.constant_(self.from_input.bias[width : 2 * width].detach(), forget_bias)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        hidden = sequence.new_zeros(len(sequence), self.width)
        memory = torch.zeros_like(hidden)
        outputs = []
        for t in range(sequence.shape[1]):
            gates = self.from_input(sequence[:, t]) + self.from_state(hidden)
            enter, forget, candidate, leave = gates.chunk(4, dim=1)
            memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(candidate)
            hidden = torch.sigmoid(leave) * torch.tanh(memory)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1)


class BuiltInLayer(nn.Module):
    def __init__(self, inputs: int, width: int, forget_bias: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, batch_first=True)
        nn.init.constant_(self.lstm.bias_ih_l0[width : 2 * width].detach(), forget_bias)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.lstm(sequence)[0]


class GestureRecogniser(nn.Module):
    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        layer = RecurrentLayer if args.recurrence == "cells" else BuiltInLayer
        self.smooth = nn.Conv1d(AXES, args.filters, 7, padding=3)
        self.recurrent = layer(args.filters, args.width, args.forget_bias)
        self.dropout = nn.Dropout(args.dropout)
        self.classify = nn.Linear(2 * args.width, GESTURES)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        filtered = torch.relu(self.smooth(points.transpose(1, 2))).transpose(1, 2)
        states = self.recurrent(filtered)
        pooled = torch.cat([states.mean(dim=1), states.amax(dim=1)], dim=1)
        return self.classify(self.dropout(pooled))


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pin = bool(args.pin_memory) and device.type == "cuda"
    loader = DataLoader(
        draw_strokes(args.seed), args.batch_size, shuffle=True, drop_last=True, pin_memory=pin
    )
    model = GestureRecogniser(args).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, foreach=bool(args.foreach))
    stop, step = math.inf, 0
    while step < args.steps and time.monotonic() < stop:
        for points, gesture in loader:
            step += 1
            loss = criterion(model(points.to(device)), gesture.to(device))
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            if step % args.log_every == 0:
                print(f"step: {step} loss: {loss.item():.4f}", flush=True)
            if step == args.warmup_steps:
                stop = time.monotonic() + args.duration
            if step == args.steps or time.monotonic() >= stop:
                break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=16)
    add("--recurrence", choices=["cells", "built-in"], default="cells")
    add("--width", type=int, default=32)
    add("--filters", type=int, default=12)
    add("--forget_bias", type=float, default=1.0)
    add("--dropout", type=float, default=0.1)
    add("--label_smoothing", type=float, default=0.05)
    add("--pin_memory", type=int, default=0)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=1.0)
    add("--lr", type=float, default=2e-3)
    add("--log_every", type=int, default=2)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
