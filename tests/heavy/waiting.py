"""A data set that makes its training wait for a known share of each step, whatever the training is.

It sleeps for 1.5 times what has passed since the last batch was complete: 60 % of the step. It is read by the
training process itself; what it did is said at the end, to be held against what was measured from outside.
"""

from __future__ import annotations

import atexit
import json
import time

import torch
from torch import nn
from torch.utils.data import Dataset

WIDTH = 16
READS = 3


class Waiting(Dataset):
    """`batches` batches of `size` samples, each a row of numbers and its class."""

    def __init__(self, size: int, batches: int) -> None:
        self.size, self.batches = size, batches
        self.ends: list[float] = []
        self.slept: list[float] = []
        atexit.register(self.tell)

    def __len__(self) -> int:
        return self.size * self.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index % self.size == 0 and self.ends:
            self.slept.append(1.5 * (time.perf_counter() - self.ends[-1]))
            time.sleep(self.slept[-1])
        row = torch.full((WIDTH,), index % 7 / 7), index % 2
        if index % self.size == self.size - 1:
            self.ends.append(time.perf_counter())
        return row

    def tell(self) -> None:
        """Without the first steps, as every measurement leaves them out."""
        if len(self.ends) > 20:
            took = self.ends[-1] - self.ends[10]
            steps = len(self.ends) - 11
            told = {"steps_per_s": steps / took, "share": sum(self.slept[10:]) / took}
            print(f"truth {json.dumps(told)}", flush=True)


class Busy(nn.Module):
    """A small model in front of a device that is busy for 15 ms; its figures are read three times a step."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        time.sleep(0.015)
        scores = self.layers(rows)
        if self.training:
            for _ in range(READS):
                scores.detach().sum().item()
        return scores
