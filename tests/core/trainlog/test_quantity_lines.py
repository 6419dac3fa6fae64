"""Where counts of work and rewards stand in the lines of known programs."""

from __future__ import annotations

import re

import pytest

from gpudebug.core.trainlog.quantity_lines import read_quantities

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
