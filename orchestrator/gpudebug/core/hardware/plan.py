"""The phases through which `doctor --gpu` takes each GPU.

Standard library only: the process that loads the GPUs imports this.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.lazy import regex

IDLE, TOGETHER = "idle", "together"
DUTIES = (0.15, 0.5, 0.95)
WORK, SPIN = "work", "spin"
"""Kernels: one that multiplies on the whole GPU, and one whose single thread only waits for the clock."""

_UUID = regex(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


class Load(NamedTuple):
    """What one GPU does in a phase: `duty` is the share of the time (0 to 1) in which the kernel runs."""

    uuid: str
    kernel: str
    duty: float


class Phase(NamedTuple):
    """Some seconds in which the GPUs of `loads` work and all others idle."""

    name: str
    seconds: float
    loads: tuple[Load, ...] = ()


def schedule(uuids: Sequence[str], seconds: float) -> tuple[Phase, ...]:
    """All idle, then each GPU alone with each load, then the first two together: the least duty and the most.

    `seconds` is the length of each phase.
    """
    phases = [Phase(IDLE, seconds)]
    for uuid in uuids:
        phases += [Phase(name_of(WORK, duty), seconds, (Load(uuid, WORK, duty),)) for duty in DUTIES]
        phases.append(Phase(name_of(SPIN, DUTIES[-1]), seconds, (Load(uuid, SPIN, DUTIES[-1]),)))
    if len(uuids) > 1:
        pair = (Load(uuids[0], WORK, DUTIES[0]), Load(uuids[1], WORK, DUTIES[-1]))
        phases.append(Phase(TOGETHER, seconds, pair))
    return tuple(phases)


def name_of(kernel: str, duty: float) -> str:
    """Return the name of a phase, as in `work 50`."""
    return f"{kernel} {100 * duty:.0f}"


def plain_uuid(uuid: str) -> str:
    """The 32 hexadecimal digits of a UUID as NVML, CUDA or CUDA_VISIBLE_DEVICES write it; else the text.

    NVML writes `GPU-` and `MIG-` before them; CUDA gives 16 bytes.
    """
    found = _UUID.search(uuid.lower())
    return found[0].replace("-", "") if found else uuid


def written(phases: Sequence[Phase]) -> str:
    """Phases as one line of JSON."""
    return json.dumps(phases)


def parsed(text: str) -> tuple[Phase, ...]:
    """Parse what `written` wrote."""
    return tuple(
        Phase(name, seconds, tuple(Load(*load) for load in loads))
        for name, seconds, loads in json.loads(text)
    )
