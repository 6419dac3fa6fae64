"""Lines by which programs say that they go on where an earlier run ended."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.resumed import resumes


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
def test_a_line_that_says_so(line: str) -> None:
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
def test_a_line_that_does_not(line: str) -> None:
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
