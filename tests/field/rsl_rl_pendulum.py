"""A pendulum for rsl_rl's own runner, which brings no environment: `--num_envs 16 --max_iterations 50`."""

from __future__ import annotations

import argparse
import math

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict


class Pendulum(VecEnv):
    """Batched; actions are torques, rewards as Gymnasium's Pendulum-v1 has them."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, 200
        self.device, self.cfg = torch.device("cpu"), {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.state = torch.zeros(num_envs, 2)
        self._begin(torch.ones(num_envs, dtype=torch.bool))

    def _begin(self, which: torch.Tensor) -> None:
        self.state[which] = (torch.rand(int(which.sum()), 2) - 0.5) * torch.tensor([2 * math.pi, 2.0])
        self.episode_length_buf[which] = 0

    def get_observations(self) -> TensorDict:
        angle, speed = self.state.unbind(1)
        seen = torch.stack([angle.cos(), angle.sin(), speed / 8], 1)
        return TensorDict({"policy": seen}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        angle, speed = self.state.unbind(1)
        torque = actions.squeeze(1).clamp(-1, 1) * 2
        turned = (angle + math.pi) % (2 * math.pi) - math.pi
        reward = -(turned**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = (speed + 0.05 * (15 * angle.sin() + 3 * torque)).clamp(-8, 8)
        self.state = torch.stack([angle + 0.05 * speed, speed], 1)
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.max_episode_length
        self._begin(done)
        return self.get_observations(), reward, done, {"time_outs": done}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_envs", type=int, default=16)
    parser.add_argument("--max_iterations", type=int, default=100)
    parser.add_argument("--log_dir")
    wanted = parser.parse_args()
    torch.manual_seed(0)
    network = {"class_name": "MLPModel", "hidden_dims": [64, 64], "activation": "elu"}
    settings = {
        "num_steps_per_env": 32,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": network,
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 4,
            "num_mini_batches": 4,
            "learning_rate": 1e-3,
            "gamma": 0.95,
            "schedule": "fixed",
        },
    }
    OnPolicyRunner(Pendulum(wanted.num_envs), settings, wanted.log_dir, "cpu").learn(wanted.max_iterations)


if __name__ == "__main__":
    main()
