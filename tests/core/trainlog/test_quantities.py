"""What names mean of work and rewards."""

from __future__ import annotations

import re

import pytest

from gpudebug.core.trainlog.quantities import quantity, read_quantities

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


LINES = {
    "|    total_timesteps | 512      |": [("total_timesteps", "512")],
    "|    ep_rew_mean     | -25.6    |": [("ep_rew_mean", "-25.6")],
    "global_step=123, episodic_return=[12.5]": [("episodic_return", "12.5")],
    "SPS: 1345": [("SPS", "1345")],
    "       Computation: 50000 steps/s (collection: 1.500s, learning 0.300s)": [("Computation", "50000")],
    "                   Total timesteps: 98304": [("Total timesteps", "98304")],
    "            Steps per second: 50000": [("Steps per second", "50000")],
    "fps step: 12 fps step and policy inference: 11 fps total: 9 epoch: 3/100 frames: 1024/50000": [
        ("fps step", "12"),
        ("fps step and policy inference", "11"),
        ("fps total", "9"),
        ("frames", "1024"),
    ],
    "{'loss': 1.2, 'num_tokens': 12345.0, 'epoch': 0.1}": [("num_tokens", "12345.0")],
    "step 10 loss 3.2 | dt 100ms | 19541 tok/s": [("tok/s", "19541")],
    "  Agent Steps  1.2M   Forward 0s": [("Agent Steps", "1.2M")],
    "   SPS          3.4m       Evaluate   12s   40%": [("SPS", "3.4m")],
    "num_env_steps_sampled_lifetime: 4000": [("num_env_steps_sampled_lifetime", "4000")],
    "step 10 | loss 3.2 | 12.3k tok/s": [("tok/s", "12.3k")],
    "step 10 loss 3.2 tok/s: 12.3k": [("tok/s", "12.3k")],
    "train_fn: step 10 loss 3.2 tok/s 51200": [("tok/s", "51200")],
    "iter 4 reward 1.5 12345.6 env steps/s": [("reward", "1.5"), ("env steps/s", "12345.6")],
    "Avg episode reward: [(0, '1.123')]": [("Avg episode reward", "1.123")],
    "Mean reward: nan": [("Mean reward", "nan")],
    "Epoch 12 / 40.96 ksps / 1.20% of 10.00 Msteps / (55% train / 40% rollout)": [("sps", "40.96 k")],
    " iteration       10/     200 | consumed samples:          160 | loss: 2.1": [
        ("consumed samples", "160")
    ],
}


@pytest.mark.parametrize(("line", "expected"), LINES.items())
def test_the_numbers_of_a_line(line: str, expected: list[tuple[str, str]]) -> None:
    found = read_quantities(re.sub(r"\d", "0", line))
    assert found is not None
    assert [(one.name, line[one.value[0] : one.value[1]]) for one in found.found] == expected


@pytest.mark.parametrize(
    "line", ["Epoch 3/10, loss 0.5", "tokens per iteration will be: 12,288", "returned 0", "50 examples"]
)
def test_other_lines_have_none(line: str) -> None:
    assert read_quantities(re.sub(r"\d", "0", line)) is None


def test_an_evaluation_makes_the_line_one() -> None:
    found = read_quantities("Eval num_timesteps=000, episode_reward=0.00 +/- 0.00")
    assert found is not None
    assert [(one.quantity.kind, one.quantity.phase) for one in found.found] == [("reward", "val")]
