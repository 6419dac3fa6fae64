"""What names mean of work and rewards."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.quantities import quantity

NAMES = {
    # stable-baselines3, rsl_rl, CleanRL, rl_games, RLlib, PufferLib and metta, torchrl, skrl.
    "total_timesteps": ("count", "environment steps"),
    "Total timesteps": ("count", "environment steps"),
    "Total steps": ("count", "environment steps"),
    "num_env_steps_sampled_lifetime": ("count", "environment steps"),
    "timesteps_total": ("count", "environment steps"),
    "agent_steps": ("count", "environment steps"),
    "Agent Steps": ("count", "environment steps"),
    "frames": ("count", "environment steps"),
    "collected_frames": ("count", "environment steps"),
    "fps": ("rate", "environment steps"),
    "SPS": ("rate", "environment steps"),
    "charts/SPS": ("rate", "environment steps"),
    "fps total": ("rate", "environment steps"),
    "Steps per second": ("rate", ""),
    "ep_rew_mean": ("reward", ""),
    "Mean reward": ("reward", ""),
    "episodic_return": ("reward", ""),
    "episode_reward_mean": ("reward", ""),
    "episode_return_mean": ("reward", ""),
    "Reward / Total reward mean": ("reward", ""),
    # Spinning Up, verl, Kostrikov's.
    "TotalEnvInteracts": ("count", "environment steps"),
    "AverageEpRet": ("reward", ""),
    "critic/rewards/mean": ("reward", ""),
    "env_runners/episode_return_mean": ("reward", ""),
    "mean/median reward": ("reward", ""),
    # Language models and batches.
    "tok/s": ("rate", "tokens"),
    "tokens/sec": ("rate", "tokens"),
    "Tokens/s/device": ("rate", "tokens"),
    "env steps/s": ("rate", "environment steps"),
    "num_input_tokens_seen": ("count", "tokens"),
    "num_tokens": ("count", "tokens"),
    "tokens_seen": ("count", "tokens"),
    "tokens_per_second": ("rate", "tokens"),
    "train_tokens_per_second": ("rate", "tokens"),
    "consumed samples": ("count", "samples"),
}
NEITHER = [
    *("global_step", "step", "iterations", "n_updates", "ep_len_mean", "learning_starts", "max_timesteps"),
    *("time_elapsed", "loss", "value_loss", "Episode_Reward/track_lin_vel", "reward_scale", "reward_std"),
    *(
        "saving next best rewards",
        "tokens per iteration will be",
        "vocab tokens",
        "batch_size",
        "frame_stack",
    ),
    *("explained_variance", "approx_kl", "steps", "samples", "timesteps_per_batch", "rewards/chosen"),
    *("min/max reward", "critic/rewards/max", "StdEpRet", "samples/s", "perf/total_time"),
]


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_a_name_of_work_or_reward(name: str, expected: tuple[str, str]) -> None:
    found = quantity(name)
    assert found is not None
    assert (found.kind, found.unit) == expected


@pytest.mark.parametrize("name", NEITHER)
def test_a_name_that_is_neither(name: str) -> None:
    assert quantity(name) is None


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("dt", "tok/s", ("rate", "tokens")),
        ("", "tokens/sec", ("rate", "tokens")),
        ("Computation", "steps/s", ("rate", "environment steps")),
        ("", "frames/s", ("rate", "environment steps")),
        ("speed", "sps", ("rate", "environment steps")),
    ],
)
def test_a_rate_by_its_unit(name: str, unit: str, expected: tuple[str, str]) -> None:
    found = quantity(name, unit)
    assert found is not None
    assert (found.kind, found.unit) == expected


@pytest.mark.parametrize("unit", ["it/s", "ms/step", "GB/s", "%"])
def test_another_unit_is_no_work(unit: str) -> None:
    assert quantity("speed", unit) is None


def test_an_evaluation_is_told_apart() -> None:
    assert [q.phase for name in ("eval/mean_reward", "ep_rew_mean") if (q := quantity(name))] == ["val", ""]
