"""Trains a deep Q-network to cross a busy road, in many small worlds at once."""

from __future__ import annotations

import argparse
import copy
import math
import random
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

LANES, LENGTH, ACTIONS = 8, 8, 3
SHAPE = (3, LANES + 2, LENGTH)


class Roads:
    """Walkers that want to get to the top, and cars in each lane; all worlds step together."""

    def __init__(self, number: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.speeds = self.rng.choice([-1, 1], (number, LANES))
        self.cars = self.rng.integers(0, LENGTH, (number, LANES))
        self.rows = np.zeros(number, np.int64)
        self.crossings = 0

    def observe(self) -> np.ndarray:
        """(number, *SHAPE): the walker, the cars, and where the cars will be next."""
        seen = np.zeros((len(self.rows), *SHAPE), np.float32)
        world, lanes = np.arange(len(self.rows)), np.arange(1, LANES + 1)
        seen[world, 0, self.rows, LENGTH // 2] = 1
        seen[world[:, None], 1, lanes, self.cars] = 1
        seen[world[:, None], 2, lanes, (self.cars + self.speeds) % LENGTH] = 1
        return seen

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Up, down or stay: a reward for each lane gained, and back to the start when hit."""
        self.cars = (self.cars + self.speeds) % LENGTH
        before = self.rows
        self.rows = (self.rows + np.array([1, -1, 0])[actions]).clip(0, LANES + 1)
        rewards = self.rows - before
        crossed = self.rows == LANES + 1
        hit = (self.cars == LENGTH // 2)[np.arange(len(self.rows)), (self.rows - 1).clip(0, LANES - 1)]
        hit &= (self.rows > 0) & ~crossed
        over = crossed | hit
        self.rows[over] = 0
        self.crossings += int(crossed.sum())
        return self.observe(), (rewards - hit).astype(np.float32), over.astype(np.float32)


@dataclass(frozen=True)
class Transition:
    state: torch.Tensor
    action: int
    reward: float
    after: torch.Tensor
    over: float


class ListMemory:
    """The last `capacity` transitions, as objects in a list."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.transitions: list[Transition] = []

    def __len__(self) -> int:
        return len(self.transitions)

    def add(self, states: Any, actions: Any, rewards: Any, after: Any, over: Any) -> None:
        for parts in zip(states, actions, rewards, after, over, strict=True):
            state, action, reward, then, end = parts
            moment = Transition(
                torch.from_numpy(state), int(action), float(reward), torch.from_numpy(then), float(end)
            )
            self.transitions = [*self.transitions, moment][-self.capacity :]

    def sample(self, size: int) -> tuple[torch.Tensor, ...]:
        chosen = random.sample(self.transitions, size)
        return (
            torch.stack([moment.state for moment in chosen]),
            torch.tensor([moment.action for moment in chosen]),
            torch.tensor([moment.reward for moment in chosen]),
            torch.stack([moment.after for moment in chosen]),
            torch.tensor([moment.over for moment in chosen]),
        )


class RingMemory:
    """The same in arrays that are there from the beginning."""

    def __init__(self, capacity: int) -> None:
        self.arrays = (
            np.zeros((capacity, *SHAPE), np.float32),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.float32),
            np.zeros((capacity, *SHAPE), np.float32),
            np.zeros(capacity, np.float32),
        )
        self.capacity, self.added = capacity, 0

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, *parts: np.ndarray) -> None:
        places = (self.added + np.arange(len(parts[0]))) % self.capacity
        for array, part in zip(self.arrays, parts, strict=True):
            array[places] = part
        self.added += len(places)

    def sample(self, size: int) -> tuple[torch.Tensor, ...]:
        chosen = np.random.randint(0, len(self), size)
        return tuple(torch.from_numpy(array[chosen]) for array in self.arrays)


class QNetwork(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(160, width), nn.ReLU(), nn.Linear(width, 1))
        self.advantage = nn.Sequential(nn.Linear(160, width), nn.ReLU(), nn.Linear(width, ACTIONS))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        seen = self.see(states)
        advantage = self.advantage(seen)
        return self.value(seen) + advantage - advantage.mean(dim=1, keepdim=True)


class Learner:
    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        self.online = QNetwork(args.width).to(device)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), args.lr, foreach=bool(args.foreach))

    @torch.no_grad()
    def act(self, states: np.ndarray, epsilon: float) -> np.ndarray:
        greedy = self.online(torch.from_numpy(states).to(self.device)).argmax(dim=1).cpu().numpy()
        explore = np.random.random(len(states)) < epsilon
        return np.where(explore, np.random.randint(0, ACTIONS, len(states)), greedy)

    def learn(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        states, actions, rewards, after, over = (part.to(self.device) for part in batch)
        with torch.no_grad():
            ahead = self.target(after)
            best = self.online(after).argmax(dim=1) if self.args.double else ahead.argmax(dim=1)
            goal = rewards + 0.6 * (1 - over) * ahead.gather(1, best[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(self.online(states).gather(1, actions[:, None])[:, 0], goal)
        self.optimizer.zero_grad(set_to_none=bool(self.args.set_to_none))
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), self.args.clip_norm)
        self.optimizer.step()
        return loss

    def follow(self) -> None:
        self.target.load_state_dict(self.online.state_dict())


def train(args: argparse.Namespace) -> None:
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    roads, learner = Roads(args.num_envs, args.seed), Learner(args, device)
    memory = ListMemory(args.capacity) if args.memory == "list" else RingMemory(args.capacity)
    states, stop, step = roads.observe(), math.inf, 0
    while step < args.steps and time.monotonic() < stop:
        epsilon = max(args.epsilon, 1 - step / 200)
        actions = learner.act(states, epsilon)
        after, rewards, over = roads.step(actions)
        memory.add(states, actions, rewards, after, over)
        states = after
        if len(memory) < args.learning_starts:
            continue
        step += 1
        loss = learner.learn(memory.sample(args.batch_size))
        if step % args.target_every == 0:
            learner.follow()
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.5f} crossings: {roads.crossings}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--num_envs", type=int, default=48)
    add("--memory", choices=["list", "ring"], default="list")
    add("--capacity", type=int, default=16000)
    add("--learning_starts", type=int, default=16000, help="transitions before the first update")
    add("--batch_size", type=int, default=128)
    add("--width", type=int, default=128)
    add("--double", type=int, default=1, help="1: the online network chooses, the target's values count")
    add("--target_every", type=int, default=20)
    add("--epsilon", type=float, default=0.05, help="share of random actions in the end")
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=10.0)
    add("--lr", type=float, default=5e-4)
    add("--log_every", type=int, default=5)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
