"""Walks a six-legged robot with a learnt gait: reads its joints, asks the policy, sends targets. No training.

The joints' servos hang on one half-duplex serial line. They are simulated behind a pseudo terminal: each
answers after the time that question and answer take on the wire.
"""

from __future__ import annotations

import argparse
import math
import os
import struct
import threading
import time
import tty
from collections import deque

import torch
from torch import nn

JOINTS, HISTORY = 18, 24
READ, WRITE = 0x02, 0x03
FRAME = struct.Struct("<BBBh")
"""Header, servo, instruction, value; and ten bits a byte on the wire."""


class SimulatedServos:
    """The far end of the line: answers every frame, and turns joints to where they are told to be."""

    def __init__(self, baud: int) -> None:
        self.far, near = os.openpty()
        tty.setraw(self.far)
        tty.setraw(near)
        self.near = near
        self.wire_s = 2 * 10 * FRAME.size / baud
        self.angles = [0.0] * JOINTS
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self) -> None:
        while True:
            _, servo, instruction, value = FRAME.unpack(receive(self.far))
            if instruction == WRITE:
                self.angles[servo] += 0.3 * (value / 1000 - self.angles[servo])
            time.sleep(self.wire_s)
            os.write(self.far, FRAME.pack(0xFF, servo, instruction, int(1000 * self.angles[servo])))


def receive(line: int) -> bytes:
    frame = b""
    while len(frame) < FRAME.size:
        frame += os.read(line, FRAME.size - len(frame))
    return frame


class ServoBus:
    def __init__(self, line: int) -> None:
        self.line = line

    def transact(self, servo: int, instruction: int, value: int = 0) -> int:
        os.write(self.line, FRAME.pack(0xFF, servo, instruction, value))
        return FRAME.unpack(receive(self.line))[3]

    def read_joints(self) -> list[float]:
        return [self.transact(servo, READ) / 1000 for servo in range(JOINTS)]

    def write_joints(self, targets: list[float]) -> None:
        for servo, target in enumerate(targets):
            self.transact(servo, WRITE, int(1000 * target))


class GaitPolicy(nn.Module):
    """Joint targets from the last HISTORY readings and the phase of the gait."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Linear(JOINTS + 2, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, JOINTS)

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.head(self.layers(self.embed(readings))[:, -1]))


def smooth(targets: torch.Tensor, before: torch.Tensor | None, factor: float) -> torch.Tensor:
    return targets if before is None else factor * before + (1 - factor) * targets


def walk(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bus = ServoBus(SimulatedServos(args.baud).near)
    policy = GaitPolicy(args.width, args.depth).to(device)
    if args.eval_mode:
        policy.eval()
    guard = torch.inference_mode if args.inference_mode else torch.no_grad
    memory: deque[list[float]] = deque([[0.0] * (JOINTS + 2)] * HISTORY, maxlen=HISTORY)
    sent, stop = None, math.inf
    for tick in range(1, args.ticks + 1):
        begun = time.perf_counter()
        phase = 2 * math.pi * tick / args.gait_period
        memory.append([*bus.read_joints(), math.sin(phase), math.cos(phase)])
        with guard():
            targets = policy(torch.tensor([list(memory)], device=device))[0]
            if args.smoothing:
                targets = sent = smooth(targets, sent, args.smoothing)
        if args.check_finite and not bool(targets.isfinite().all()):
            raise SystemExit(f"the policy's targets at tick {tick} are not finite")
        bus.write_joints(targets.tolist())
        if tick % args.log_every == 0:
            print(f"tick {tick} latency: {1000 * (time.perf_counter() - begun):.2f} ms", flush=True)
        if tick == args.warmup_ticks:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--baud", type=int, default=57600, help="of the servos' serial line")
    add("--width", type=int, default=96)
    add("--depth", type=int, default=2)
    add("--gait_period", type=int, default=40, help="ticks")
    add("--smoothing", type=float, default=0.3, help="how much of the last targets stays; 0: none")
    add("--check_finite", type=int, default=1, help="1: stop when a target is not finite")
    add("--eval_mode", type=int, default=0, help="1: without dropout")
    add("--inference_mode", type=int, default=0, help="1: inference_mode instead of no_grad")
    add("--log_every", type=int, default=1)
    add("--duration", type=float, default=math.inf, help="s to run for after the warm-up")
    add("--warmup_ticks", type=int, default=10, help="ticks before --duration counts")
    add("--ticks", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    walk(parse())
