"""Trains an actor-critic to balance poles on carts; all carts are one tensor that lives on the device."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

GRAVITY, POLE, HALF, FORCE, TAU = 9.8, 0.1, 0.5, 10.0, 0.02
FURTHEST, STEEPEST = 2.4, 0.21


class Carts:
    """State of (carts, 4): position, its velocity, angle, its velocity."""

    def __init__(self, number: int, device: torch.device) -> None:
        self.state = self.fresh(torch.empty(number, 4, device=device))

    @staticmethod
    def fresh(like: Tensor) -> Tensor:
        return torch.empty_like(like).uniform_(-0.05, 0.05)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Whether each pole fell, which starts it anew, and the reward: upright is better than leaning."""
        x, speed, angle, turning = self.state.unbind(dim=1)
        force = FORCE * (2 * actions - 1)
        sine, cosine = angle.sin(), angle.cos()
        push = (force + POLE * HALF * turning.square() * sine) / (1 + POLE)
        bend = (GRAVITY * sine - cosine * push) / (HALF * (4 / 3 - POLE * cosine.square() / (1 + POLE)))
        slide = push - POLE * HALF * bend * cosine / (1 + POLE)
        x, speed = x + TAU * speed, speed + TAU * slide
        angle, turning = angle + TAU * turning, turning + TAU * bend
        fell = (x.abs() > FURTHEST) | (angle.abs() > STEEPEST)
        reward = 1 - angle.abs() / STEEPEST
        moved = torch.stack([x, speed, angle, turning], dim=1)
        self.state = torch.where(fell[:, None], self.fresh(moved), moved)
        return reward.masked_fill(fell, -1.0), fell.float()


class ActorCritic(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(4, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
        )  # fmt: skip
        self.actor, self.critic = nn.Linear(width, 2), nn.Linear(width, 1)

    def forward(self, states: Tensor) -> tuple[Categorical, Tensor]:
        hidden = self.trunk(states)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden)[..., 0]


@dataclass
class Rollout:
    """What happened over a horizon, each (horizon, carts, ...)."""

    states: Tensor
    actions: Tensor
    returns: Tensor


@torch.no_grad()
def play(carts: Carts, agent: ActorCritic, horizon: int, discount: float) -> Rollout:
    states, actions, rewards, falls = [], [], [], []
    for _ in range(horizon):
        states.append(carts.state)
        actions.append(agent(carts.state)[0].sample())
        reward, fell = carts.step(actions[-1])
        rewards.append(reward)
        falls.append(fell)
    returns = agent(carts.state)[1]
    found = []
    for reward, fell in zip(reversed(rewards), reversed(falls), strict=True):
        returns = reward + discount * returns * (1 - fell)
        found.append(returns)
    return Rollout(torch.stack(states), torch.stack(actions), torch.stack(found[::-1]))


def improve(
    agent: ActorCritic, optimizer: torch.optim.Optimizer, seen: Rollout, args: argparse.Namespace
) -> Tensor:
    policy, values = agent(seen.states)
    advantages = seen.returns - values.detach()
    if args.normalise_advantages:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
    critic = nn.functional.huber_loss(values, seen.returns)
    loss = critic - 0.1 * (policy.log_prob(seen.actions) * advantages).mean()
    loss = loss - args.entropy * policy.entropy().mean()
    optimizer.zero_grad(set_to_none=bool(args.set_to_none))
    loss.backward()
    if args.clip_norm:
        nn.utils.clip_grad_norm_(agent.parameters(), args.clip_norm)
    optimizer.step()
    return critic


def main(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.distributions.Distribution.set_default_validate_args(bool(args.validate_args))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    carts, agent = Carts(args.carts, device), ActorCritic(args.width).to(device)
    optimizer = torch.optim.RMSprop(agent.parameters(), args.lr, foreach=bool(args.foreach))
    stop = math.inf
    for step in range(1, args.steps + 1):
        seen = play(carts, agent, args.horizon, args.discount)
        loss = improve(agent, optimizer, seen, args)
        if step % args.log_every == 0:
            print(f"step: {step} loss: {loss.item():.4f} return: {seen.returns.mean():.3f}", flush=True)
        if step == args.warmup_steps:
            stop = time.monotonic() + args.duration
        if time.monotonic() >= stop:
            break


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--carts", type=int, default=256)
    add("--horizon", type=int, default=8)
    add("--width", type=int, default=192)
    add("--discount", type=float, default=0.9)
    add("--entropy", type=float, default=0.001)
    add("--normalise_advantages", type=int, default=1)
    add("--validate_args", type=int, default=0, help="1: distributions check their arguments")
    add("--foreach", type=int, default=0, help="1: update all parameters in a few calls")
    add("--set_to_none", type=int, default=0)
    add("--clip_norm", type=float, default=1.0, help="0: leave gradients as they are")
    add("--lr", type=float, default=1e-3)
    add("--log_every", type=int, default=2)
    add("--duration", type=float, default=math.inf, help="s to train for after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=10**9)
    add("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main(parse())
