"""A training program on the CPU for tests: each step waits for its samples, then learns from them.

Learning is real: stochastic gradient descent of a straight line. `--spin`, `--dummy`, `--recompute` and a
smaller batch make the core busier, or the steps faster, without more being learnt.
"""

from __future__ import annotations

import argparse
import random
import sys
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add = parser.add_argument
    add("--batch_size", type=int, default=8)
    add("--fetch", type=float, default=5.0, help="ms to wait for each sample")
    add("--learn", type=float, default=10.0, help="ms that a step computes, whatever the batch")
    add("--spin", action="store_true", help="wait for the samples in a busy loop")
    add("--dummy", action="store_true", help="multiply matrices that nobody needs while the samples come")
    add("--recompute", action="store_true", help="compute each step three times")
    add("--duration", type=float, default=6.5, help="s to train for")
    return parser.parse_args()


def multiply(size: int = 12) -> list[list[float]]:
    a = [[float(i * j % 7) for j in range(size)] for i in range(size)]
    return [[sum(a[i][k] * a[k][j] for k in range(size)) for j in range(size)] for i in range(size)]


def fetch(o: argparse.Namespace, until: float) -> None:
    while o.spin and time.monotonic() < until:
        pass
    while o.dummy and time.monotonic() < until:
        multiply()
    time.sleep(max(0.0, until - time.monotonic()))


def compute(seconds: float) -> None:
    """Work that takes this much time of the core, however busy others keep it."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        multiply()


def main() -> None:
    o = parse()
    noise = random.Random(1)
    slope, began, step = 0.0, time.monotonic(), 0
    while time.monotonic() - began < o.duration:
        fetch(o, time.monotonic() + o.batch_size * o.fetch / 1000)
        compute(o.learn / 1000 * (3 if o.recompute else 1))
        inputs = [i / o.batch_size for i in range(1, o.batch_size + 1)]
        batch = [(x, 3 * x + noise.gauss(0, 0.02)) for x in inputs]
        errors = [(x, slope * x - y) for x, y in batch]
        slope -= 0.05 * sum(e * x for x, e in errors) / len(batch)
        step += 1
        print(f"step {step} loss {sum(e * e for _, e in errors) / len(batch):.5f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
