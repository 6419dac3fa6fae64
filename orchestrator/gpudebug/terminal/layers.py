"""Layer tests as text for people."""

from __future__ import annotations

from gpudebug.core.answers.diagnosis import DiagnoseAnswer, LayerAnswer
from gpudebug.core.statistics import numbers

_MOST = 12
DIAGNOSTIC = "It shows where to look and is not a fix: no hypothesis, baseline or verdict uses this run."


def layer(answer: LayerAnswer) -> str:
    """Render `diagnose --layer`."""
    took = answer.device_time_s
    cost = f", {numbers.duration(took)} of the device" if took is not None else ""
    lines = [
        f"Layer test {answer.layer}: run {answer.run}{cost}",
        f"changed  {answer.changed}",
        f"means    {answer.means[:1].upper()}{answer.means[1:]}.",
    ]
    if answer.layer == "double-batch" and answer.ratio is not None:
        lines.append(f"         Samples a second: {answer.ratio:.2f} times the baseline's.")
    lines += [f"note     {note}" for note in answer.notes]
    return "\n".join([*lines, DIAGNOSTIC, f"Next: {answer.next_command}"])


def around(answer: DiagnoseAnswer) -> list[str]:
    """List layer tests and differences from the reference, a line each; long lists are cut."""
    lines = [
        f"Layer {name}: {test.means} ({', '.join(test.runs)}; diagnostic only)"
        for name, test in answer.layers.items()
    ]
    differences = answer.difference.lines if answer.difference else ()
    if differences:
        more = [f"and {len(differences) - _MOST} more, in --json"] if len(differences) > _MOST else []
        lines += ["Differs from the reference:", *(f"  {line}" for line in (*differences[:_MOST], *more))]
    return lines
