"""Trains a student to act as a scripted teacher does, in many small worlds at once, before PPO takes over.

The teacher runs on the CPU and the student on the device. `--teacher_calls=each` brings one world's
observation to the CPU, asks the teacher and takes its action back, world by world; `all` does so once for
all worlds of a step.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import torch
from torch import nn

SENSORS, MOVES, MEMORY = 64, 8, 16


class Worlds:
    """`number` worlds whose observations drift by the student's moves; computed on the device."""

    def __init__(self, number: int, device: torch.device) -> None:
        generator = torch.Generator().manual_seed(11)
        self.state = torch.randn(number, SENSORS, generator=generator).to(device)
        self.push = (0.5 * torch.randn(MOVES, SENSORS, generator=generator)).to(device)

    def step(self, moves: torch.Tensor) -> torch.Tensor:
        noise = 0.3 * torch.randn_like(self.state)
        self.state = 0.9 * self.state + self.push[moves] + noise
        return self.state


class Teacher:
    """A scripted agent on the CPU, of fixed weights. `act` takes (SENSORS,), `act_all` (N, SENSORS)."""

    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        self.first = (rng.normal(0, 1, (SENSORS, MEMORY)) / 8).astype(np.float32)
        self.second = rng.normal(0, 1, (MEMORY, MOVES)).astype(np.float32)

    def act(self, sensors: np.ndarray) -> int:
        return int((np.tanh(sensors @ self.first) @ self.second).argmax())

    def act_all(self, sensors: np.ndarray) -> np.ndarray:
        return (np.tanh(sensors @ self.first) @ self.second).argmax(axis=1)


def ask_teacher(teacher: Teacher, sensors: torch.Tensor, calls: str) -> torch.Tensor:
    """The teacher's move for each world, shape (N,), on the device of `sensors`."""
    if calls == "all":
        return torch.from_numpy(teacher.act_all(sensors.cpu().numpy())).to(sensors.device)
    moves = []
    for world in range(len(sensors)):
        seen = sensors[world].detach().cpu().numpy()
        moves.append(torch.tensor(teacher.act(seen)).to(sensors.device))
    return torch.stack(moves)


class Student(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SENSORS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.moves, self.value = nn.Linear(width, MOVES), nn.Linear(width, 1)

    def forward(self, sensors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(sensors)
        return self.moves(hidden), self.value(hidden)[:, 0]


class Replay:
    """The last `capacity` steps of all worlds, on the device."""

    def __init__(self, capacity: int, number: int, device: torch.device) -> None:
        self.sensors = torch.zeros(capacity, number, SENSORS, device=device)
        self.labels = torch.zeros(capacity, number, dtype=torch.long, device=device)
        self.count = 0

    def store(self, sensors: torch.Tensor, labels: torch.Tensor) -> None:
        at = self.count % len(self.sensors)
        self.sensors[at], self.labels[at] = sensors, labels
        self.count += 1


@torch.no_grad()
def evaluate(student: Student, teacher: Teacher, args: argparse.Namespace, device: torch.device) -> float:
    """How often student and teacher agree over a few steps in worlds of their own."""
    worlds, agreed = Worlds(args.num_envs, device), 0.0
    sensors = worlds.state
    for _ in range(args.eval_steps):
        moves = student(sensors)[0].argmax(dim=1)
        agreed += float((moves == ask_teacher(teacher, sensors, "all")).float().mean())
        sensors = worlds.step(moves)
    return agreed / args.eval_steps


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    worlds, teacher = Worlds(args.num_envs, device), Teacher()
    student = Student(args.width).to(device)
    replay = Replay(args.replay_steps, args.num_envs, device)
    optimizer = torch.optim.Adam(student.parameters(), args.lr, foreach=bool(args.foreach))
    sensors, end = worlds.state, math.inf
    for step in range(1, args.steps + 1):
        for _ in range(args.horizon):
            with torch.no_grad():
                logits, _ = student(sensors)
            replay.store(sensors, ask_teacher(teacher, sensors, args.teacher_calls))
            sensors = worlds.step(torch.multinomial(logits.softmax(dim=1), 1)[:, 0])
        rows = torch.arange(replay.count - args.horizon, replay.count) % args.replay_steps
        logits, values = student(replay.sensors[rows].flatten(0, 1))
        labels = replay.labels[rows].flatten()
        agreement = (logits.detach().argmax(dim=1) == labels).float()
        loss = nn.functional.cross_entropy(logits, labels)
        loss = loss + args.value_weight * nn.functional.mse_loss(values, agreement)
        optimizer.zero_grad(set_to_none=bool(args.set_to_none))
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), args.clip_norm)
        optimizer.step()
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f}", flush=True)
        if args.eval_every and step % args.eval_every == 0:
            print(f"agreement after {step} steps: {evaluate(student, teacher, args, device):.3f}", flush=True)
        if step == args.warmup_steps:
            end = time.monotonic() + args.duration
        if time.monotonic() >= end:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--num_envs", type=int, default=128)
    add("--horizon", type=int, default=4)
    add("--teacher_calls", choices=["each", "all"], default="each")
    add("--eval_every", type=int, default=10)
    add("--eval_steps", type=int, default=20)
    add("--replay_steps", type=int, default=64)
    add("--width", type=int, default=128)
    add("--value_weight", type=float, default=0.5)
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=1)
    add("--clip_norm", type=float, default=1.0)
    add("--lr", type=float, default=3e-4)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
