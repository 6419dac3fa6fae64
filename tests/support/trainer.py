"""A quick training program for tests: prints `step N/M loss X`, and burns the share of a core it is told."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add = parser.add_argument
    add("--lr", type=float, default=0.1)
    add("--work", type=float, default=0.2, help="share of each step that is computed; the rest is slept")
    add("--step-time", type=float, default=0.02, help="s a step")
    add("--steps", type=int, default=0, help="stop after this many; 0: by duration")
    add("--duration", type=float, default=6.0, help="s to train for")
    add("--crash", type=int, default=0, help="raise at this step")
    add("--nan", type=int, default=0, help="the loss is NaN from this step")
    add("--write", default="", help="a file to write at the end")
    add("--say", default="", help="a text to print")
    add("--print-env", default="", help="a variable to print")
    add("--child", action="store_true", help="leave a child process behind")
    add("--hang", action="store_true", help="ignore SIGINT and SIGTERM")
    return parser.parse_args()


def main() -> None:
    o = parse()
    if o.hang:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if o.say:
        print(o.say)
    if o.print_env:
        print(o.print_env, os.environ.get(o.print_env))
    if o.child:
        subprocess.Popen(["sleep", "600"])
    began = time.monotonic()
    total = o.steps or max(1, round(o.duration / o.step_time))
    for step in range(1, total + 1):
        until = time.process_time() + o.work * o.step_time
        while time.process_time() < until:
            pass
        time.sleep(max(0.0, began + step * o.step_time - time.monotonic()))
        if step == o.crash:
            raise RuntimeError("the planted crash")
        loss = float("nan") if o.nan and step >= o.nan else 2.0 - 1.5 * step / total
        print(f"step {step}/{total} loss {loss:.4f}", flush=True)
    if o.write:
        with open(o.write, "w", encoding="utf-8") as f:
            f.write("trained\n")


if __name__ == "__main__":
    sys.exit(main())
