"""Programs that print as known trainers do, for tests: what they process is sleep, and their reward a line.

A step of all environments waits `--step` ms however many they are, as a vectorised environment does, and an
update waits for 1 ms a minibatch. `--form` is sb3 (stable-baselines3's table), cleanrl or nanogpt.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

ROLLOUT = 32
TOKENS = 64


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--form", default="sb3")
    parser.add_argument("--n_envs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--step", type=float, default=2.0, help="ms of a step of all environments")
    parser.add_argument("--duration", type=float, default=7.0, help="s to train for")
    parser.add_argument("--nan", action="store_true", help="the reward is no number from the middle on")
    parser.add_argument("--csv", action="store_true", help="write the reward into progress.csv alone")
    return parser.parse_args()


def main() -> None:
    o = parse()
    began = time.monotonic()
    {"sb3": learn, "cleanrl": learn, "nanogpt": language_model}[o.form](o, began)


def learn(o: argparse.Namespace, began: float) -> None:
    total, updates = 0, 0
    table = Path(os.environ.get("GPUDEBUG_RUN_DIR", ".")) / "progress.csv"
    if o.csv:
        table.write_text("time/total_timesteps,rollout/ep_rew_mean\n")
    while (elapsed := time.monotonic() - began) < o.duration:
        time.sleep(ROLLOUT * o.step / 1000)
        total += ROLLOUT * o.n_envs
        time.sleep(0.001 * o.n_envs)
        updates += 1
        reward = "nan" if o.nan and elapsed > o.duration / 2 else f"{20 + total / 200:.2f}"
        if o.csv:
            with table.open("a") as f:
                f.write(f"{total},{reward}\n")
        if o.form == "cleanrl":
            print(f"global_step={total}, episodic_return=[{reward}]", flush=True)
        else:
            rate = total / elapsed if elapsed else 0
            print(table_of(total, updates, None if o.csv else reward, rate), flush=True)


def table_of(total: int, updates: int, reward: str | None, fps: float) -> str:
    rows = [("time/", ""), ("   fps", f"{fps:.0f}"), ("   iterations", str(updates))]
    rows += [("   total_timesteps", str(total)), ("train/", ""), ("   value_loss", "41.5")]
    if reward is not None:
        rows = [("rollout/", ""), ("   ep_rew_mean", reward), *rows]
    rule = "-" * 40
    body = "\n".join(f"| {name:<22} | {value:<11} |" for name, value in rows)
    return f"{rule}\n{body}\n{rule}"


def language_model(o: argparse.Namespace, began: float) -> None:
    print(f"tokens per iteration will be: {o.batch_size * TOKENS:,}", flush=True)
    step = 0
    while time.monotonic() - began < o.duration:
        time.sleep(0.004 * o.batch_size)
        step += 1
        print(f"iter {step}: loss {3 / step**0.1:.4f}, time {4 * o.batch_size}ms, mfu 1.00%", flush=True)


if __name__ == "__main__":
    main()
