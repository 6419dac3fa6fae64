"""Trains a small network on a GPU with PyTorch, with a known number of copies, reads and waits a step.

`doctor --gpu` runs it to see whether the probe counts them: each step copies one batch from pinned memory to
the GPU, reads the loss once and waits for the GPU once.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def train(steps: int) -> None:
    torch: Any = importlib.import_module("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(steps * 32, 512))
    for step, (batch,) in enumerate(
        torch.utils.data.DataLoader(data, batch_size=32, pin_memory=True), start=1
    ):
        loss = net(batch.to("cuda", non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}", flush=True)
        torch.cuda.synchronize()


if __name__ == "__main__":
    train(int(sys.argv[1]))
