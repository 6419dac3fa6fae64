"""An inference program without a framework: answers requests, prints how long each took, and ends."""

from __future__ import annotations

import argparse
import time


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=320)
    parser.add_argument("--copies", type=int, default=3, help="ms that an answer waits for its copies")
    parser.add_argument("--quality", type=float, default=0.9)
    options = parser.parse_args()
    for number in range(options.requests):
        asked = time.perf_counter()
        # The first requests find nothing warm.
        time.sleep((20 if number < 5 else 3 + options.copies) / 1000)
        print(f"request {number} latency: {1000 * (time.perf_counter() - asked):.3f} ms", flush=True)
    print(f"success_rate: {options.quality:.3f}")


if __name__ == "__main__":
    main()
