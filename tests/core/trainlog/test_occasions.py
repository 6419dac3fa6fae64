"""Evaluations and checkpoints in the logs of programs."""

from __future__ import annotations

import pytest
from tests.support.excerpts import course

from gpudebug.core.trainlog.occasions import Objectives, finds_cache, resumes
from gpudebug.core.trainlog.reader import LogReader


@pytest.mark.parametrize(
    "line",
    [
        "Using cached features from data/cache.npy",
        "Loading cached processed dataset at /data/x.arrow",
        "Loading features from cached file data/cached_train_128",
        "Reusing dataset imdb (/root/data)",
        "train: Scanning /data/labels.cache... 128 images, 0 backgrounds",
        "Found preprocessed data in out/prepared",
        "[cache] hit: 200 samples",
        "data/train.bin already exists",
        "Loaded tokenized dataset from tok.bin",
        "Loading compiled kernels from build/",
        "Tokenized file found: tok.npy",
    ],
)
def test_a_cache_that_was_found(line: str) -> None:
    assert finds_cache(line.encode()) == line


@pytest.mark.parametrize(
    "line",
    [
        "Building cache data/cache.npy",
        "Cache not found: computing features",
        "cache miss",
        "use_cache: true",
        "cache_dir: /data/cached",
        "Saving preprocessed data to out/prepared",
        "Tokenizing 200 files",
        "Generating with the kv cache, using 4 heads",
        "step 1 loss 2.0",
    ],
)
def test_no_cache(line: str) -> None:
    assert finds_cache(line.encode()) is None


def test_what_is_cached_in_the_middle_is_the_programs_own() -> None:
    steps = "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9))
    for log, found in ((f"Using cached data\n{steps}", True), (f"{steps}Using cached data\n", False)):
        reader = LogReader()
        reader.feed(log.encode(), 1.0)
        assert (reader.summary().cached is not None) is found


@pytest.mark.parametrize(
    "line",
    [
        "Loading snapshot",
        "Resuming training from snapshot at Epoch 30",
        "Resuming training from out",
        "=> loaded checkpoint 'checkpoint.pth.tar' (epoch 12)",
        "Resuming from step 4000",
        "Continuing training from checkpoint, will skip to saved global_step",
        "Restored all states from the checkpoint at last.ckpt",
        "Found checkpoint at out/step_100.pt",
        "Resuming from checkpoint out/checkpoint-40",
        "Auto-resumed checkpoint: work_dirs/epoch_3.pth",
        "Starting training from iteration 500",
        "Continuing training from global step 40",
        "resumed epoch: 3, iter: 300",
        "Restored training at epoch: 10",
        "Resuming training from best.pt",
    ],
)
def test_resumed(line: str) -> None:
    assert resumes(line.encode()) == line


@pytest.mark.parametrize(
    "line",
    [
        "No checkpoint found, starting from scratch",
        "resume: false",
        "Not resuming from a checkpoint",
        "Loading checkpoint shards: 100%",
        "Loading dataset from cache",
        "saving checkpoint to out",
        "Loading pretrained checkpoint from models/llama",
        "Loads checkpoint by http backend from path: https://download.openmmlab.com/x.pth",
        "Loaded state_dict from checkpoint '/root/.cache/torch/hub/checkpoints/resnet50.pth'",
        "Loading backbone checkpoint from imagenet.pth",
        "step 1 loss 2.0",
        "Restoring best model",
        "Restoring model weights from the end of the best epoch: 3.",
        "Loading best model from out/checkpoint-40 (score: 0.4)",
        "Loaded best checkpoint for evaluation",
        "Loaded pretrained weights",
        "Loading initial checkpoint init.pt",
        "loading configuration file /x/checkpoint/config.json",
        "Resuming from epoch 0",
        "Starting training from iteration 0",
        "=> loaded checkpoint 'resnet50.pth' (epoch 0)",
        "resume from: ''",
        "resume = out/checkpoint-40",
        "Looking for a checkpoint to resume from in out",
        "Found 0 checkpoint files",
        "Restoring default settings from config",
        "Restored logging level at INFO",
        "Continuing with training on cpu",
    ],
)
def test_not_resumed(line: str) -> None:
    assert resumes(line.encode()) is None


def test_what_is_loaded_in_the_middle_is_the_programs_own() -> None:
    steps = "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9))
    short = "".join(f"epoch {i} loss 2.{i}\n" for i in range(1, 9, 7))
    for log, found in (
        (f"Loading snapshot\n{steps}", True),
        (f"{steps}Loading checkpoint out/last.pt\n", False),
        (f"{steps}Resuming training from out/last.pt\n", False),
        (f"{short}Loading checkpoint out/last.pt for the report\n", False),
        (f"{short}Resuming training from out/last.pt\n{steps}", True),
    ):
        reader = LogReader()
        reader.feed(log.encode(), 1.0)
        summary = reader.summary()
        assert (summary.resumed is not None) is found
        assert summary.span == (1, 8)


LOSSES = course("falls", 2.0, 0.0, "objectives")[:12]


def steps(losses: list[float], first: int = 0) -> str:
    return "".join(f"step {first + i} loss {loss:.4f}\n" for i, loss in enumerate(losses))


def trend(text: str) -> tuple[str, str | None]:
    reader = LogReader()
    reader.feed(text.encode())
    found = reader.summary()
    return str(found.trend), found.objective


@pytest.mark.parametrize(
    "line",
    [
        "===== Stage 2: full resolution =====",
        "Entering phase two",
        "Switching to the next curriculum level",
        "INFO changing loss function to focal",
        "Unfreezing the backbone",
        "curriculum_step: 3",
    ],
)
def test_the_loss_is_judged_by_what_follows(line: str) -> None:
    higher = [9 * loss for loss in LOSSES]
    assert trend(f"{steps(LOSSES)}{line}\n{steps(higher, 12)}") == ("CONVERGING", line)
    assert trend(steps(LOSSES) + steps(higher, 12)) == ("DIVERGING", None)


def test_few_values_of_the_new_one_leave_the_old_verdict() -> None:
    assert trend(f"{steps(LOSSES)}Stage 2\n{steps([40.0, 60.0], 12)}")[0] == "CONVERGING"


def test_one_that_diverges_in_its_second_stage_is_told() -> None:
    assert trend(f"{steps(LOSSES)}Stage 2\n{steps(LOSSES[::-1], 12)}")[0] == "DIVERGING"


def test_a_stage_in_each_line() -> None:
    text = "".join(
        f"stage {1 + i // 12} | step {i} | loss {loss:.4f}\n"
        for i, loss in enumerate([*LOSSES, *(9 * loss for loss in LOSSES)])
    )
    assert trend(text)[0] == "CONVERGING"


@pytest.mark.parametrize(
    "line",
    [
        "ZeRO stage 2 enabled",
        "zero_optimization: stage: 3",
        "Stage 1 begins",
        "the learning rate will change in phase 2",
        "saving to runs/stage2/model.pt",
        "val phase: loss 2.1",
    ],
)
def test_other_lines(line: str) -> None:
    assert not Objectives().read(line.encode(), begun=True)


def test_before_training_nothing_changes() -> None:
    assert not Objectives().read(b"Stage 2", begun=False)


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
