"""What a probe writes of imaginary trainings, for tests of what is made of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

T0 = 1000.0


def start(pid: int = 1, at: float = 2.0, **more: Any) -> str:
    """The first line of a process that begins to train `at` seconds after the launch."""
    known = {"version": 1, "ppid": 0, "t0": T0, "rank": None, "local_rank": None, "world_size": None}
    return line("start", pid, at, **{**known, "argv0": "train.py", "torch": "2.13.0", **more})


def line(kind: str, pid: int, at: float, **more: Any) -> str:
    return json.dumps({"kind": kind, "pid": pid, "t": T0 + at, **more}) + "\n"


def beat(pid: int, at: float, steps: int, kind: str = "beat", **counters: float) -> str:
    return line(kind, pid, at, steps=steps, counters=counters, hist={}, opt={"0": steps})


def bucket(seconds: float) -> str:
    return str(math.floor(32 * math.log2(seconds / 1e-6)))


def training(
    pid: int = 1,
    *,
    begins: float = 2.0,
    step_s: float = 0.1,
    steps: int = 300,
    every: int = 5,
    per_step: Mapping[str, float] | None = None,
    ends: bool = True,
    **more: Any,
) -> str:
    """All lines of a steady training whose iterations take `step_s` each, `every` so many with a beat.

    `per_step` is by how much each counter rises in an iteration.
    """
    found = [start(pid, begins, **more)]
    for done in range(1, steps + 1):
        if done % every and done > 1:
            continue
        counters = {name: done * amount for name, amount in (per_step or {}).items()}
        counted = {bucket(step_s): every - (done == every) if done > 1 else 0}
        at = begins + done * step_s
        found.append(line("beat", pid, at, steps=done, counters=counters, hist=counted, opt={"0": done}))
    if ends:
        counters = {name: steps * amount for name, amount in (per_step or {}).items()}
        at = begins + steps * step_s + 1
        found.append(line("end", pid, at, steps=steps, counters=counters, hist={}, opt={"0": steps}))
    return "".join(found)
