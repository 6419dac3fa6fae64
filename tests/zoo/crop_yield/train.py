"""Predicts yields of fields, and keeps a snapshot of the network in an archive."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from typing import Any

import torch
from ddp import Batch, Device, equal_batches, options, train
from torch import nn


class Archive(io.BytesIO):
    """A file on a server that takes its time for what it is given."""

    def write(self, data: Any) -> int:
        time.sleep(len(data) * 3e-5)
        return super().write(data)


def keep(step: int, model: nn.Module, _: Iterable[Batch]) -> None:
    if step % args.keep_every == 0:
        with Archive() as archive:
            torch.save(model.state_dict(), archive)


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--keep_every", type=int, default=4)
    args = parser.parse_args()
    train(args, Device(0.02), lambda: equal_batches(args), keep)
