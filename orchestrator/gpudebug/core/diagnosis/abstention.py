"""When a diagnosis names no cause as likely, and why."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import SMALL, Scored

LIKELY = 0.15
"""Below it the first cause is no better than a guess among those that come behind it."""
_SUPPORT = 0.5
_TELLING = (
    *("data_wait_share", "log_data_share", "stacks_s", "trace_busy_share", "layer_cached_batch_ratio"),
    "awaited_device",
)


def why(facts: DiagnosisFacts, ranked: Sequence[tuple[Scored, float]]) -> str | None:
    """One line; None if the first of `ranked`, each with its probability, is worth testing."""
    if not facts.runs and not facts.signals:
        return "no run of the workload has evidence yet: record its baseline"
    if "steps" in facts.absent:
        return facts.absent["steps"]
    telling = [name for name in _TELLING if name in facts.signals]
    if not telling and not facts.sections:
        reasons = "; ".join(dict.fromkeys(facts.absent.values()))
        return f"the evidence is thin: {reasons or 'nothing shows where the time goes'}"
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
    """Tell whether it is what others do on the host, and not the workload's own."""
    return scored.cause.gate and scored.cause.group == "hardware"


def is_likely(scored: Scored) -> bool:
    """Tell whether a cause of the workload's own has a sign and takes time."""
    small = scored.exposed is not None and scored.exposed < SMALL
    return scored.support >= _SUPPORT and not small and not surrounds(scored)
