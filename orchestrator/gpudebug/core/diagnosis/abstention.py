"""When a diagnosis names no cause as likely, and why."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.diagnosis.figures import number
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import SMALL, Scored
from gpudebug.core.words import counted

LIKELY = 0.15
"""Below it the first cause is no better than a guess among those that come behind it."""
FEW_STEPS = 10
"""Iterations of which no share is worth believing (knowledge of the field: profiles of fewer are empty)."""
_SUPPORT = 0.5
_TELLING = (
    *("data_wait_share", "log_data_share", "stacks_s", "trace_busy_share", "layer_cached_batch_ratio"),
    "awaited_device",
)


def why(facts: DiagnosisFacts, ranked: Sequence[tuple[Scored, float]]) -> str | None:
    """One line; None if the first of `ranked`, each with its probability, is worth testing."""
    if not facts.runs and not facts.signals:
        return "no run of the workload has evidence yet: record its baseline"
    telling = [name for name in _TELLING if name in facts.signals]
    if not telling and not facts.sections:
        reasons = "; ".join(dict.fromkeys(facts.absent.values()))
        return f"the evidence is thin: {reasons or 'nothing shows where the time goes'}"
    steps = number(facts.signals.get("probe_steps"))
    if "device" in facts.absent and steps is not None and steps < FEW_STEPS:
        return f"the runs are too short: {counted(round(steps), 'iteration')}; {facts.absent['device']}"
    likely = [(s, p) for s, p in ranked if is_likely(s)]
    if not likely:
        return "nothing in the catalogue explains idling here: no cause with a sign takes 5% of the time"
    first, chance = max(likely, key=lambda one: one[1])
    if chance < LIKELY:
        most = max(ranked, key=lambda one: one[1])[0]
        which = "the most probable" if first is most else "the most probable that is worth a test"
        return f"no cause stands out: {which}, {first.cause.id}, has {chance:.0%}"
    return None


def surrounds(scored: Scored) -> bool:
    """Whether it is what others do on the host, and not the workload's own."""
    return scored.cause.gate and scored.cause.group == "hardware"


def is_likely(scored: Scored) -> bool:
    """Whether a cause of the workload's own has a sign and takes time."""
    small = scored.exposed is not None and scored.exposed < SMALL
    return scored.support >= _SUPPORT and not small and not surrounds(scored)
