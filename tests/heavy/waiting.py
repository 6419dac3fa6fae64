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
        self.begins: list[float] = []
        self.ends: list[float] = []
        atexit.register(self.tell)

    def __len__(self) -> int:
        return self.size * self.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index % self.size == 0:
            self.begins.append(time.perf_counter())
            time.sleep(1.5 * (self.begins[-1] - self.ends[-1]) if self.ends else 0.0)
        row = torch.full((WIDTH,), index % 7 / 7), index % 2
        if index % self.size == self.size - 1:
            self.ends.append(time.perf_counter())
        return row

    def tell(self) -> None:
        """Without the first steps, as every measurement leaves them out."""
        if len(self.ends) > 20:
            took = self.ends[-1] - self.ends[10]
            waited = [end - begin for begin, end in zip(self.begins, self.ends, strict=False)]
            told = {"steps_per_s": (len(self.ends) - 11) / took, "share": sum(waited[11:]) / took}
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
