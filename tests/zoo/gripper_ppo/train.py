"""Trains a gripper by PPO in a physics engine that runs elsewhere: each step waits for its answer.

`--stepping=serial` asks one simulator after the other, `--stepping=threads` all at once.
"""

from __future__ import annotations

import argparse
import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn
from torch.distributions import Distribution, Normal

STATE, ACTION = 24, 4


class Gripper:
    """A hand that should come to a target. The engine takes `step_s` for a step of its physics."""

    def __init__(self, seed: int, step_s: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.step_s = step_s
        self.reset()

    def reset(self) -> np.ndarray:
        self.hand, self.target = self.rng.uniform(-1, 1, (2, ACTION))
        self.ticks = int(self.rng.integers(0, 24))
        return self.observe()

    def observe(self) -> np.ndarray:
        sensors = np.concatenate([self.hand, self.target, self.hand - self.target])
        return np.concatenate([sensors, np.tanh(3 * sensors)]).astype(np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool]:
        time.sleep(self.step_s)
        self.hand = (self.hand + 0.1 * np.tanh(action)).clip(-2, 2)
        self.ticks += 1
        reward = -float(np.abs(self.hand - self.target).mean())
        done = self.ticks == 32
        return (self.reset() if done else self.observe()), reward, done


class Grippers:
    """Several of them, stepped one after the other or by a thread each."""

    def __init__(self, number: int, step_s: float, threads: bool) -> None:
        self.envs = [Gripper(seed, step_s) for seed in range(number)]
        self.pool = ThreadPoolExecutor(number) if threads else None

    def reset(self) -> np.ndarray:
        return np.stack([env.reset() for env in self.envs])

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        pairs = zip(self.envs, actions, strict=True)
        if self.pool:
            results = list(self.pool.map(lambda pair: pair[0].step(pair[1]), pairs))
        else:
            results = [env.step(action) for env, action in pairs]
        states, rewards, dones = zip(*results, strict=True)
        return np.stack(states), np.asarray(rewards, np.float32), np.asarray(dones, np.float32)


class Agent(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(STATE, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean, self.value = nn.Linear(width, ACTION), nn.Linear(width, 1)
        self.log_std = nn.Parameter(torch.full((ACTION,), -0.5))

    def forward(self, states: torch.Tensor) -> tuple[Normal, torch.Tensor]:
        hidden = self.body(states)
        return Normal(self.mean(hidden), self.log_std.exp()), self.value(hidden)[..., 0]


def returns_of(rewards: torch.Tensor, dones: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Discounted sums of (T, N) rewards; `last` are the values after the last step."""
    found = []
    for reward, done in zip(rewards.flip(0), dones.flip(0), strict=True):
        last = reward + 0.7 * last * (1 - done)
        found.insert(0, last)
    return torch.stack(found)


def rollout(agent: Agent, envs: Grippers, states: np.ndarray, args: argparse.Namespace, device: str) -> tuple:
    """`horizon` steps of all environments: the batch for the update, and the states after it."""
    seen = []
    for _ in range(args.horizon):
        inputs = torch.from_numpy(states).to(device)
        with torch.no_grad():
            policy, _ = agent(inputs)
            actions = policy.sample()
        states, rewards, dones = envs.step(actions.cpu().numpy())
        seen.append((inputs, actions, policy.log_prob(actions).sum(-1), rewards, dones))
    inputs, actions, log_probs = (torch.stack(part) for part in list(zip(*seen, strict=True))[:3])
    rewards, dones = (torch.from_numpy(np.stack([s[i] for s in seen])).to(device) for i in (3, 4))
    with torch.no_grad():
        last = agent(torch.from_numpy(states).to(device))[1]
    return (inputs, actions, log_probs, returns_of(rewards, dones, last)), states


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    Distribution.set_default_validate_args(bool(args.validate_args))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    envs = Grippers(args.num_envs, args.step_s, args.stepping == "threads")
    agent = Agent(args.width).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), args.lr, foreach=bool(args.foreach))
    states, end = envs.reset(), math.inf
    for step in range(1, args.steps + 1):
        batch, states = rollout(agent, envs, states, args, device)
        inputs, actions, old, returns = (part.flatten(0, 1) for part in batch)
        for _ in range(args.epochs):
            policy, values = agent(inputs)
            advantages = returns - values.detach()
            if args.normalise_advantages:
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
            ratio = (policy.log_prob(actions).sum(-1) - old).exp()
            clipped = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
            loss = nn.functional.mse_loss(values, returns) - 0.1 * clipped.mean()
            loss = loss - args.entropy * policy.entropy().sum(-1).mean()
            optimizer.zero_grad(set_to_none=bool(args.set_to_none))
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.clip_norm)
            optimizer.step()
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f} return: {returns.mean().item():.3f}", flush=True)
        if step == args.warmup_steps:
            end = time.monotonic() + args.duration
        if time.monotonic() >= end:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--num_envs", type=int, default=8)
    add("--horizon", type=int, default=8)
    add("--stepping", choices=["serial", "threads"], default="serial")
    add("--step_s", type=float, default=0.001, help="s that the physics engine takes for a step")
    add("--epochs", type=int, default=6)
    add("--width", type=int, default=256)
    add("--entropy", type=float, default=0.001)
    add("--normalise_advantages", type=int, default=1)
    add("--validate_args", type=int, default=1, help="0: distributions take their arguments as they are")
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=1)
    add("--clip_norm", type=float, default=0.5)
    add("--lr", type=float, default=2e-5)
    add("--log_every", type=int, default=2)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse())
