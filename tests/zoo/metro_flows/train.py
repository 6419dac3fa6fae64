"""Predicts how many people take the metro, with an index of its stations."""

from __future__ import annotations

import os
import time

from ddp import Device, equal_batches, options, train


def index(kind: str) -> int:
    """The stations: made by the second process, or read by both."""
    if kind == "made" and os.environ["RANK"] == "1":
        time.sleep(18)
    return 400


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--index", choices=["made", "read"], default="made")
    args = parser.parse_args()
    assert index(args.index)
    train(args, Device(0.02), lambda: equal_batches(args))
