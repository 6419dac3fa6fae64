"""A run that is under way, and a wait that found none, as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core.statistics import numbers

Answer = Mapping[str, Any]


def running(answer: Answer) -> str:
    return "\n".join(
        [
            f"Running: {answer['why']}.",
            f"  {progress(answer)}",
            f"Next: {answer['next_command']}",
        ]
    )


def progress(told: Answer) -> str:
    """One line: the run, how far it is, its utilisation; what is not known is left out or called unknown."""
    if told["run"] is None:
        return "no run has begun yet"
    step = numbers.UNKNOWN if told["step"] is None else str(told["step"])
    parts = [told["run"], f"step {step}" + (f" of {told['steps']}" if told["steps"] else "")]
    if told["elapsed_s"] is not None:
        parts.append(f"{numbers.duration(told['elapsed_s'])} elapsed")
    left = told["left_s"]
    parts.append(f"time left {numbers.UNKNOWN}" if left is None else f"{numbers.duration(left)} left")
    parts.append(f"gpu_util {numbers.percent(told['gpu_util'])} so far")
    if told["runs_done"]:
        parts.append(f"{told['runs_done']} run{'s' if told['runs_done'] != 1 else ''} done")
    return ", ".join(parts)


def idle(answer: Answer) -> str:
    return f"{answer['why'][0].upper()}{answer['why'][1:]}.\nNext: {answer['next_command']}"
