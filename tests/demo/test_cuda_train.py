"""The PyTorch program of `doctor --gpu`."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What needs a GPU is left out: the program's own path is the same.
_ON_CPU = """
import torch
torch.nn.Module.to = lambda self, device: self
torch.Tensor.to = lambda self, device, non_blocking: self
torch.cuda.synchronize = lambda: None
from gpudebug.demo.cuda_train import train
train(4)
"""


@pytest.mark.slow
def test_it_logs_a_step_and_a_loss_each_step() -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _ON_CPU], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    words = [line.split() for line in done.stdout.splitlines()]
    assert [w[:2] for w in words] == [["step", str(i)] for i in range(1, 5)]
    assert all(0 < float(w[3]) < 1 for w in words)


@pytest.mark.gpu
def test_it_trains_on_a_gpu() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpudebug.demo.cuda_train", "4"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
