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
    ],
)
def test_a_line_that_does_not(line: str) -> None:
    assert resumes(line.encode()) is None


def test_what_is_loaded_in_the_middle_is_the_programs_own() -> None:
    steps = "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9))
    for log, found in ((f"Loading snapshot\n{steps}", True), (f"{steps}Loading best checkpoint\n", False)):
        reader = LogReader()
        reader.feed(log.encode(), 1.0)
        summary = reader.summary()
        assert (summary.resumed is not None) is found
        assert summary.span == (1, 8)
