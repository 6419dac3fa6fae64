"""A training program on the CPU for tests of the gates: it learns a slope and prints its options.

How long it trains stands in the file that `--seconds` names, so that a story need not wait for every run.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import time
from pathlib import Path

PRESETS = {"small": {"momentum": 0.0, "width": 1}, "large": {"momentum": 0.5, "width": 1}}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add = parser.add_argument
    add("--lr", type=float, default=0.05)
    add("--momentum", type=float, default=0.0)
    add("--width", type=int, default=1)
    add("--preset", default="small", choices=PRESETS, help="its options win over those of the command line")
    add("--seconds", type=Path, required=True)
    options = parser.parse_args()
    vars(options).update(PRESETS[options.preset])
    return options


def main() -> None:
    o = parse()
    print(o, flush=True)
    if importlib.util.find_spec("pkg"):
        import pkg  # type: ignore[import-not-found]

        print(f"speed {pkg.SPEED}")
    noise = random.Random(1)
    slope = velocity = 0.0
    began, step = time.monotonic(), 0
    while time.monotonic() - began < float(o.seconds.read_text()):
        step += 1
        until = time.process_time() + 0.004
        while time.process_time() < until:
            pass
        time.sleep(max(0.0, began + step * 0.02 - time.monotonic()))
        error = slope - 3 + noise.gauss(0, 0.02)
        velocity = o.momentum * velocity - o.lr * error
        slope += velocity
        print(f"step {step} loss {error * error:.5f}", flush=True)


if __name__ == "__main__":
    main()
