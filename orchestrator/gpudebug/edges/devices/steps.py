"""Processes of a run that a scheduler's daemon started: what `srun` asks for is no child of ours, and carries
the run's mark in its variables."""

from __future__ import annotations

import os
from collections.abc import Collection

VARIABLE = "GPUDEBUG_RUN"


def marked(marker: str, known: Collection[int]) -> list[int]:
    """PIDs, but for those that are `known`, of processes with this mark; of other users none can be read."""
    entry = b"\0" + os.fsencode(f"{VARIABLE}={marker}") + b"\0"
    return [pid for pid in _all() if pid not in known and entry in b"\0" + _environ(pid)]


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""
