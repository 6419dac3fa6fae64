"""A plain loop: the loader waits for 60 % of each step, and the loss is read every step."""

from __future__ import annotations

import argparse

import torch
from torch.utils.data import DataLoader
from waiting import Busy, Waiting


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = Busy()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    loader = DataLoader(Waiting(8, options.steps), batch_size=8)
    for step, (rows, classes) in enumerate(loader, 1):
        loss = torch.nn.functional.cross_entropy(model(rows), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}/{options.steps} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
