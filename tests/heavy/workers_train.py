"""Two workers that need 200 ms for a batch, and a loop that needs 40 ms: it waits for 60 % of each step."""

from __future__ import annotations

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, batches: int) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return 4 * self.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.05)
        return torch.full((16,), index % 7 / 7), index % 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", default="fork")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(16, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = Slow(options.steps)
    loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=options.method)
    for step, (rows, classes) in enumerate(loader, 1):
        began = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(rows), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(max(0.0, began + 0.04 - time.perf_counter()))
        print(f"step {step}/{options.steps} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
