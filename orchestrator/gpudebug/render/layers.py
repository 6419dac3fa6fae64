"""The lines that say what a layer test found."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from gpudebug.core import present

Answer = Mapping[str, Any]
DIAGNOSTIC = "It tells where to look and is no fix: no hypothesis, baseline or verdict uses this run."


def layer(answer: Answer) -> str:
    """`diagnose --layer` as text."""
    took = answer["device_time_s"]
    cost = f", {present.duration(took)} of the device" if took is not None else ""
    lines = [
        f"Layer test {answer['layer']}: run {answer['run']}{cost}",
        f"changed  {answer['changed']}",
        f"means    {answer['means'][:1].upper()}{answer['means'][1:]}.",
    ]
    if answer["layer"] == "double-batch" and answer["ratio"] is not None:
        lines.append(f"         Samples a second: {answer['ratio']:.2f} times the baseline's.")
    lines += [f"note     {note}" for note in answer["notes"]]
    return "\n".join([*lines, DIAGNOSTIC, f"Next: {answer['next_command']}"])


def tested(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line for each layer test of a campaign, by layer."""
    return [
        f"layer    {name.replace('_', '-')}: {found['means']} (run {shlex.quote(found['run'])})"
        for name, found in results.items()
    ]
