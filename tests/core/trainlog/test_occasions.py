"""Evaluations and checkpoints in the logs of programs."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader

NANOGPT = "".join(
    (f"step {i}: train loss 4.1, val loss 4.{i}\n" if i % 20 == 0 else "")
    + ("saving checkpoint to out\n" if i % 20 == 0 and i else "")
    + f"iter {i}: loss 4.{900 - i}, time 20.00ms, mfu 1.00%\n"
    for i in range(100)
)
HUGGING_FACE = "".join(
    f"{{'loss': 2.{900 - i}, 'learning_rate': 4e-05, 'epoch': {i / 10}}}\n"
    + (f"{{'eval_loss': 2.{i}, 'eval_runtime': 1.2, 'epoch': {i / 10}}}\n" if i % 5 == 4 else "")
    + ("Saving model checkpoint to out/checkpoint-10\n" if i == 9 else "")
    for i in range(10)
)
BAR = "".join(
    f"\rEpoch {e}: {i}/10 [00:01<00:01, 9.00it/s, loss=0.{90 - 10 * e - i}, val_loss=0.5{e}]"
    for e in range(3)
    for i in range(1, 11)
)
SB3 = "".join(
    f"| total_timesteps | {i * 500} |\n| loss | 0.{90 - i} |\n"
    f"Eval num_timesteps={i * 500}, episode_reward={i}.5 +/- 3.0\nNew best mean reward!\n"
    for i in range(1, 5)
)
PLAIN = "val_split: 0.1\neval_interval = 500\n" + "".join(f"step {i} loss 0.{900 - i}\n" for i in range(50))
LEROBOT = "".join(
    f"INFO 2026-06-01 10:00:00 ts/train.py:458 step:{i}00 smpl:{i}K ep:{i} loss:2.{90 - i} data_s:0.01\n"
    + (
        f"INFO 2026-06-01 10:00:00 ts/train.py:470 Checkpoint policy after step {i}00\n"
        if i % 10 == 0
        else ""
    )
    for i in range(1, 31)
)
NONE_YET = "".join(f"iter {i} | loss train: 2.{90 - i}, val: n/a | iter time: 50.0 ms\n" for i in range(50))
ONE = NONE_YET + "iter 50 | loss train: 1.9, val: 2.1 | iter time: 50.0 ms\n"


@pytest.mark.parametrize(
    ("log", "evaluations", "checkpoints"),
    [
        (NANOGPT, 4, 4),
        (HUGGING_FACE, 2, 1),
        (BAR, 2, 0),
        (SB3, 4, 0),
        (PLAIN, 0, 0),
        (LEROBOT, 0, 3),
        (NONE_YET, 0, 0),
        (ONE, 1, 0),
    ],
    ids=["nanogpt", "hugging face", "bar", "sb3", "none", "lerobot", "none yet", "one"],
)
def test_what_a_log_tells_of(log: str, evaluations: int, checkpoints: int) -> None:
    reader = LogReader()
    reader.feed(log.encode(), 1.0)
    found = reader.summary().occasions
    assert (found.get("evaluation", 0), found.get("checkpoint", 0)) == (evaluations, checkpoints)
    assert found["log line"] > 2
