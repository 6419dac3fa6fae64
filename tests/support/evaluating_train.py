"""A training program in nanoGPT's form, its configurator.py inlined: constants, a file, the command line.

It echoes the file before it applies the command line, evaluates and saves every so often, and learns a slope.
"""

from __future__ import annotations

import random
import sys
import time
from ast import literal_eval
from pathlib import Path

eval_interval = 2000
log_interval = 1
max_iters = 200

for argument in sys.argv[1:]:
    key, equals, value = argument.removeprefix("--").partition("=")
    if equals:
        print(f"Overriding: {key} = {value}")
        globals()[key] = literal_eval(value)
    else:
        text = Path(argument).read_text()
        print(f"Overriding config with {argument}:")
        print(text)
        exec(text)
noise = random.Random(0)


def evaluate(step: int) -> None:
    time.sleep(0.12)
    loss = 4 - step / 200 + noise.random() / 50
    print(f"step {step}: train loss {loss:.4f}, val loss {loss:.4f}", flush=True)
    if step:
        print("saving checkpoint to out", flush=True)


for step in range(max_iters):
    if step % eval_interval == 0:
        evaluate(step)
    until = time.process_time() + 0.003
    while time.process_time() < until:
        pass
    time.sleep(0.017)
    if step % log_interval == 0:
        loss = 4 - step / 200 + noise.random() / 20
        print(f"iter {step}: loss {loss:.4f}, time 20.00ms", flush=True)
