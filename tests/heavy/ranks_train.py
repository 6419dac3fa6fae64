"""One of several ranks whose loader needs 30 ms for a batch and the rest 20 ms: each waits for 60 %."""

from __future__ import annotations

import time

import torch
import torch.distributed
from torch.utils.data import DataLoader, Dataset

STEPS = 160


class Slow(Dataset):
    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index % 4 == 0:
            time.sleep(0.03)
        return torch.full((16,), index % 7 / 7), index % 2


def main() -> None:
    torch.distributed.init_process_group("gloo")
    torch.set_num_threads(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (rows, classes) in enumerate(DataLoader(Slow(), batch_size=4), 1):
        began = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(rows), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(max(0.0, began + 0.02 - time.perf_counter()))
        if torch.distributed.get_rank() == 0:
            print(f"step {step}/{STEPS} loss {loss.item():.4f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
