"""A training program that prints what it is told to: the figures from which a campaign's terms are chosen."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

FASTER = 1.0
"""Seconds of a step are divided by this: what patches change."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add = parser.add_argument
    add("--steps", type=int, default=40)
    add("--step-time", type=float, default=0.03, help="s a step")
    add("--work", type=float, default=0.2, help="share of each step that is computed; the rest is slept")
    add("--batch_size", type=int, default=8)
    add("--every", type=int, default=1, help="steps from one line to the next")
    add("--prints", default="loss", help="what each line has beside its step")
    add("--crash", type=int, default=0, help="raise at this step")
    add("--nan", type=int, default=0, help="the loss is NaN from this step")
    add("--cache", action="store_true", help="say that a cache is found where an earlier run made it")
    add("--tell", action="store_true", help="print a secret")
    add("--torch", action="store_true", help="make each step one of a real optimizer")
    return parser.parse_args()


def main() -> None:
    o = parse()
    snapshot, cache = Path("snapshot"), Path("cache.bin")
    secret = os.environ.get("API_TOKEN") if o.tell else None
    if secret:
        print(f"config: api_key={secret} run=plain-{secret} lr=0.1")
    if o.cache and cache.exists():
        print(f"Using cached dataset {cache}")
    elif o.cache:
        cache.write_text("made\n")
    first = 1
    if snapshot.exists():
        snapshot.unlink()
        first = 1 + o.steps // 2
        print(f"Resuming training from checkpoint {secret} at step {first}", flush=True)
    optimize = optimizer() if o.torch else lambda: None
    seconds, began = o.step_time / FASTER, time.monotonic()
    for step in range(first, o.steps + 1):
        until = time.process_time() + o.work * seconds
        optimize()
        while time.process_time() < until:
            pass
        time.sleep(max(0.0, began + (step - first + 1) * seconds - time.monotonic()))
        if step == o.crash:
            raise RuntimeError(f"the planted crash, {secret}")
        if step % o.every == 0:
            print(line(o, step, (step - first + 1) / (time.monotonic() - began)), flush=True)


def line(o: argparse.Namespace, step: int, rate: float) -> str:
    share, samples = step / o.steps, step * o.batch_size
    loss = float("nan") if o.nan and step >= o.nan else 2.0 - 1.5 * share
    shown = {
        "loss": f"loss {loss:.4f}",
        "rate": f"{rate:.2f} steps/s",
        "samples": f"samples_seen={samples}",
        "samples_rate": f"{rate * o.batch_size:.1f} samples/s",
        "tokens": f"num_tokens={samples * 128}",
        "timesteps": f"total_timesteps={samples}",
        "reward": f"ep_rew_mean={20 + 80 * share:.2f}",
        "latency": f"latency: {1000 / rate:.3f} ms",
        "step_time": f"step_time: {1 / rate:.4f}s",
        "score": f"score={10 * rate:.3f}",
    }
    return " ".join([f"step {step}/{o.steps}", *(shown[name] for name in o.prints.split(","))])


def optimizer():  # type: ignore[no-untyped-def]
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    made = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        made.zero_grad()
        model(torch.ones(4, 8)).pow(2).mean().backward()
        made.step()

    return step


if __name__ == "__main__":
    sys.exit(main())
