"""A data-parallel training on the nodes of a Slurm step: on node n1 a sample comes from a slow store.

Its ranks are those of `torchrun`. All-reduce lets every rank take as long as the slow one.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

BATCH = 8


class Store(Dataset[torch.Tensor]):
    def __init__(self, steps: int, seconds: float) -> None:
        self.count = steps * BATCH
        self.seconds = seconds if os.environ["SLURMD_NODENAME"] == "n1" else 0.0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.full((8,), index % 7 / 7)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--num_workers", type=int, default=0)
    parser.add_argument("--step_s", type=float, default=0.02)
    parser.add_argument("--sample_s", type=float, default=0.004)
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Store(o.steps, o.sample_s), batch_size=BATCH, num_workers=o.num_workers)
    for step, batch in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = (model(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        time.sleep(o.step_s)
        if dist.get_rank() == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
