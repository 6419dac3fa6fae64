"""A quiet PyTorch training that sleeps: of each step's time `--wait` in the loader, the rest outside of it.

Its log tells nothing. At the end it writes what it knows to `--truth`: steps and the share of its time that
it waited for batches, by its own account.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Late(Dataset[torch.Tensor]):
    """Its samples take `seconds` each."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count, self.seconds = count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.ones(4, 8)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--step-s", type=float, default=0.05)
    parser.add_argument("--wait", type=float, default=0.6)
    parser.add_argument("--kill", type=int, default=0, help="of this step, by SIGKILL")
    parser.add_argument("--truth", default="")
    o = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Late(o.steps, o.wait * o.step_s), batch_size=None))
    waited = spent = 0.0
    for step in range(o.steps):
        begun = time.monotonic()
        batch = next(batches)
        fetched = time.monotonic()
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        loss.item()
        time.sleep(max(0.0, begun + o.step_s - time.monotonic()))
        optimizer.step()
        if step >= 10:
            waited, spent = waited + fetched - begun, spent + time.monotonic() - begun
        if step + 1 == o.kill:
            os.kill(os.getpid(), signal.SIGKILL)
    if o.truth:
        with open(o.truth, "w", encoding="utf-8") as f:
            json.dump({"steps": o.steps, "waited": waited / spent}, f)


if __name__ == "__main__":
    main()
