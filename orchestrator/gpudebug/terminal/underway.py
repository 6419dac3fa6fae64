"""How far a run is, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.answers.progress import RunProgress
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import name
from gpudebug.core.words import counted

if TYPE_CHECKING:
    from gpudebug.core.answers.next import Running


def progress(run: RunProgress | Running) -> str:
    """Format the run, its progress and its utilisation."""
    if run.run is None:
        return "no run has begun yet"
    parts = [run.run, _reached(run)]
    if run.elapsed_s is not None:
        parts.append(f"{numbers.duration(run.elapsed_s)} elapsed")
    left = numbers.UNKNOWN if run.left_s is None else numbers.duration(run.left_s)
    parts.append(f"time left {left}" if run.left_s is None else f"{left} left")
    least = f" (least {run.least.value:.1f}%, {name(run.least)})" if run.least else ""
    parts.append(f"gpu_util {numbers.percent(run.gpu_util)} so far{least}")
    if run.runs_done:
        parts.append(f"{counted(run.runs_done, 'run')} done")
    return ", ".join(parts)


def _reached(run: RunProgress | Running) -> str:
    if run.step is None and run.latency_s is not None:
        return f"latency {numbers.seconds(run.latency_s)}"
    step = numbers.UNKNOWN if run.step is None else str(run.step)
    return f"step {step}" + (f" of {run.steps}" if run.steps else "")
