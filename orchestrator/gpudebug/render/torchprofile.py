"""The lines that say what PyTorch's profiler recorded."""

from __future__ import annotations

from typing import Any

from gpudebug.core import present
from gpudebug.core.torchprofile import overhead_of

Answer = dict[str, Any]


def profile(answer: Answer) -> str:
    """`baseline --torch-profile` as text."""
    role = answer["role"].partition("-")[2]
    lines = [f"Profile of the {role}: run {answer['run']}, no part of its baseline"]
    lines += trace(answer["trace"])
    lines += [f"note: {line}" for line in answer["notes"]]
    return "\n".join([*lines, f"Next: {answer['next_command']}"])


def trace(found: Answer | None) -> list[str]:
    """Where the trace is, what it covers and what the profiler cost; none where there is no trace."""
    if not found or not found.get("file"):
        return []
    overhead = overhead_of(found)
    took = found.get("active_step_s")
    told = [
        "1 iteration" if found["steps"] == 1 else f"{found['steps']} iterations",
        *([f"{present.number(took * 1e3, 'ms')} each"] if took else []),
        f"{max(0.0, overhead):.0%} longer by the profiler" if overhead is not None else "what it cost is unknown",
    ]
    others = len(found.get("files", ())) - 1
    more = f" and {others} of other ranks" if others > 0 else ""
    return [f"trace   {found.get('path') or found['file']}{more}", f"        {', '.join(told)}"]
