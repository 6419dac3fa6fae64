"""How long the phases of a run took, and which of them costs most over all that is planned."""

from __future__ import annotations

from collections.abc import Mapping

from gpudebug.core.answers.diagnosis import RunPhases
from gpudebug.core.diagnosis.ofprobe import finite
from gpudebug.core.inside.stacks.shares import share
from gpudebug.core.records import Evidence
from gpudebug.core.words import Outcome, SignalValue

LEAST = 0.01
"""A smaller part of the window is not told from none."""
_SAVES = (
    r"serialization\.py:([\w<>]+\.)*_?(legacy_)?save|safetensors/torch\.py:"
    r"|:([\w<>]+\.)*_?save(_\w+)?$|:([\w<>]+\.)*_?(write|dump)_?(checkpoint|ckpt|snapshot)\w*$"
)


def phases_of(evidence: Evidence, signals: Mapping[str, SignalValue]) -> RunPhases | None:
    """Return the phases of a run; None before its first step, and of one whose window is unknown.

    `signals` are those of its diagnosis. A run that ended by itself is all that was planned. What is not
    known to take `LEAST` of the window is left out.
    """
    first, window = evidence.first_step_s, evidence.window
    if first is None or window is None:
        return None
    training = evidence.stacks.training if evidence.stacks else None
    seen = {
        "evaluation": finite(signals.get("eval_share")),
        "saving": share(training, stack=_SAVES).value if training is not None else None,
        "between epochs": finite(signals.get("loader_restart_share", signals.get("loader_start_share"))),
    }
    within = {name: part for name, part in seen.items() if part is not None and part >= LEAST}
    total, rate = evidence.total_steps, evidence.steps_per_s
    loop_s = total / rate if total and rate else None
    if loop_s is None and evidence.outcome is Outcome.COMPLETED and evidence.duration_s is not None:
        loop_s = max(0.0, evidence.duration_s - first)
    once = {"start-up": first, "first steps": max(0.0, window.start_s - first)}
    most = part = None
    if loop_s is not None:
        costs = {**once, **{name: seconds * loop_s for name, seconds in within.items()}}
        most = max(costs, key=lambda name: costs[name])
        part = costs[most] / (loop_s + first)
    return RunPhases(
        start_up_s=first,
        first_steps_s=once["first steps"],
        steady_s=window.duration_s,
        within=within,
        most=most,
        most_share=part,
    )
