"""The lines that say what PyTorch's profiler recorded."""

from __future__ import annotations

from typing import Any

from gpudebug.core.answers.next import RecordedProfile
from gpudebug.core.inside.torch_profile import overhead_of
from gpudebug.core.statistics import numbers

Answer = dict[str, Any]


def profile(answer: RecordedProfile) -> str:
    """`baseline --torch-profile` as text."""
    role = answer.role.partition("-")[2]
    lines = [f"Profile of the {role}: run {answer.run}, no part of its baseline"]
    lines += trace(answer.trace)
    lines += [f"note: {line}" for line in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def trace(found: Answer | None) -> list[str]:
    """Where the trace is, what it covers and what the profiler cost; none where there is no trace."""
    if not found or not found.get("file"):
        return []
    overhead = overhead_of(found)
    took = found.get("active_step_s")
    told = [
        "1 iteration" if found["steps"] == 1 else f"{found['steps']} iterations",
        *([f"{numbers.number(took * 1e3, 'ms')} each"] if took else []),
        f"{max(0.0, overhead):.0%} longer by the profiler"
        if overhead is not None
        else "what it cost is unknown",
    ]
    others = len(found.get("files", ())) - 1
    more = f" and {others} of other ranks" if others > 0 else ""
    lines = [f"trace   {found.get('path') or found['file']}{more}", f"        {', '.join(told)}"]
    return lines + [f"        {line}" for line in _says(found.get("analysis") or {})]


def _says(analysis: Answer) -> list[str]:
    """What is to be seen in the trace at first sight: how busy the device was, what the steps waited for."""
    steps = analysis.get("steps") or {}
    shares = {
        "device busy": analysis.get("busy_share"),
        "waiting for data": steps.get("data_wait_share"),
    }
    told = [f"{name} {numbers.percent(100 * share)}" for name, share in shares.items() if share is not None]
    kernels, mean = analysis.get("kernels_per_step"), analysis.get("mean_kernel_us")
    if kernels is not None and mean is not None:
        told.append(f"{numbers.number(kernels)} kernels a step of {numbers.number(mean, 'us')}")
    most = ", ".join(row["name"] for row in (analysis.get("operators") or ())[:3])
    return ([", ".join(told)] if told else []) + ([f"most time in {most}"] if most else [])
