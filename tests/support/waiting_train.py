"""Trains a little on samples that come slowly; `--num_workers` is passed on to the loader."""

from __future__ import annotations

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(0.01)
        x = torch.full((64,), float(index % 7))
        return x, x.sum().reshape(1) / 64


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_workers", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Slow(), batch_size=8, num_workers=args.num_workers, persistent_workers=args.num_workers > 0
    )
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    ends, step = time.monotonic() + args.seconds, 0
    while time.monotonic() < ends:
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            busy = time.process_time() + 0.02
            while time.process_time() < busy:
                pass
            step += 1
            print(f"step: {step} loss: {loss.item():.5f}", flush=True)
            if time.monotonic() > ends:
                break


if __name__ == "__main__":
    main()
