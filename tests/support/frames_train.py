"""A small PyTorch training as LeRobot's: a policy that is called with the batch as loaded, and reads of the
two camera frames of each sample the last one. Decoding waits for a video store, three times as long for the
earlier frame, which it has to seek.
"""

from __future__ import annotations

import argparse
import logging
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FRAMES, SIDE, STATE, CHUNK = 256, 32, 6, 8
DECODE_S, SEEK_S = 0.010, 0.030
OFFSETS = [-1, 0]


class Episode(Dataset):
    def __init__(self) -> None:
        at = torch.linspace(0, 40, FRAMES + CHUNK)[:, None]
        self.path = torch.sin(at * torch.rand(STATE, generator=torch.Generator().manual_seed(5)))
        self.basis = torch.randn(STATE, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(6))

    def __len__(self) -> int:
        return FRAMES

    def decode(self, frame: int, offset: int) -> torch.Tensor:
        time.sleep(SEEK_S if offset else DECODE_S)
        return torch.einsum("s,schw->chw", self.path[max(0, frame + offset)], self.basis)

    def __getitem__(self, frame: int) -> dict[str, torch.Tensor]:
        return {
            "observation.images.wrist": torch.stack([self.decode(frame, offset) for offset in OFFSETS]),
            "observation.state": self.path[frame],
            "action": self.path[frame + 1 : frame + 1 + CHUNK],
        }


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)
        )
        self.state = nn.Linear(STATE, 64)
        self.head = nn.Linear(64, CHUNK * STATE)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        images = batch["observation.images.wrist"][:, -1]
        seen = self.backbone(images).mean((2, 3)) + self.state(batch["observation.state"])
        actions = self.head(seen.relu()).unflatten(1, (CHUNK, STATE))
        return nn.functional.l1_loss(actions, batch["action"])


def train(duration: float, batch_size: int) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = Policy()
    optimizer = torch.optim.AdamW(policy.parameters(), 3e-3)
    loader = DataLoader(Episode(), batch_size, shuffle=True, drop_last=True)
    step, end = 0, time.monotonic() + duration
    while time.monotonic() < end:
        for batch in loader:
            step += 1
            loss = policy(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            logging.info(f"ot_train.py:435 step:{step} smpl:{step * batch_size} loss:{loss.item():.4f}")
            if time.monotonic() >= end:
                break


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(asctime)s %(message)s")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--duration", type=float, default=8.0)
    parser.add_argument("--batch_size", type=int, default=4)
    options = parser.parse_args()
    train(options.duration, options.batch_size)
