"""Runs under PyTorch's profiler as text for people."""

from __future__ import annotations

from typing import Any

from gpudebug.core.answers.next import RecordedProfile
from gpudebug.core.inside.torch_profile import overhead_of
from gpudebug.core.statistics import numbers
from gpudebug.core.words import counted

Answer = dict[str, Any]


def profile(answer: RecordedProfile) -> str:
    """Render `baseline --torch-profile`."""
    role = answer.role.partition("-")[2]
    lines = [f"Profile of the {role}: run {answer.run}, no part of its baseline"]
    lines += trace(answer.trace)
    lines += [f"note: {line}" for line in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def trace(record: Answer | None) -> list[str]:
    """List the trace's file, what it covers and what the profiler cost; nothing without a trace."""
    if not record or not record.get("file"):
        return []
    overhead = overhead_of(record)
    took = record.get("active_step_s")
    facts = [
        counted(record["steps"], "iteration"),
        *([f"{numbers.number(took * 1e3, 'ms')} each"] if took else []),
        f"{max(0.0, overhead):.0%} longer by the profiler" if overhead is not None else "overhead unknown",
    ]
    others = len(record.get("files", ())) - 1
    more = f" and {others} of other ranks" if others > 0 else ""
    lines = [f"trace   {record.get('path') or record['file']}{more}", f"        {', '.join(facts)}"]
    return lines + [f"        {line}" for line in _summary(record.get("analysis") or {})]


def _summary(analysis: Answer) -> list[str]:
    """Summarise a trace: how busy the device was, what the steps waited for, the slowest operators."""
    steps = analysis.get("steps") or {}
    shares = {
        "device busy": analysis.get("busy_share"),
        "waiting for data": steps.get("data_wait_share"),
    }
    facts = [f"{name} {numbers.percent(100 * share)}" for name, share in shares.items() if share is not None]
    kernels, mean = analysis.get("kernels_per_step"), analysis.get("mean_kernel_us")
    if kernels is not None and mean is not None:
        facts.append(f"{numbers.number(kernels)} kernels a step of {numbers.number(mean, 'us')}")
    most = ", ".join(row["name"] for row in (analysis.get("operators") or ())[:3])
    return ([", ".join(facts)] if facts else []) + ([f"most time in {most}"] if most else [])
