"""Windows of several short runs that count together: how many runs that takes, and what they may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import Evidence
from gpudebug.core.samples.window import LEAST_POOLED_S, is_short
from gpudebug.core.verdict.gates.enough import POOLED_RUNS, needed_window, share_seen, window_total
from gpudebug.core.verdict.gates.setting import Criteria
from gpudebug.core.words import Outcome

POOLED = "windows are pooled"
NOT_POOLED = "windows are not pooled"


def most_runs(criteria: Criteria, before: Sequence[Evidence], after: Sequence[Evidence]) -> int:
    """How many runs the trial may have: `max_runs`, or if their windows are too short for that, as many as
    `min_window` takes.

    All of them may use the device for no longer than `max_runs` runs of the baseline's length. The delta
    stays open until their windows are long enough together, and no run of the trial follows then: it is
    looked at no more often than `max_runs` times.
    """
    most = criteria.max_runs
    if most < 2 or not after or any(e.window is None for e in after):
        return most
    wanted = _wanted(criteria, after)
    paid = wanted * _mean_duration(after) <= most * _mean_duration(before)
    return max(most, wanted) if paid else most


def in_reach(criteria: Criteria, before: Sequence[Evidence], after: Sequence[Evidence]) -> bool:
    """Whether as many runs like these as the trial may have show what a verdict needs."""
    most = most_runs(criteria, before, after)
    if any(is_short(e.window) for e in after):
        return _wanted(criteria, after) <= most
    return share_seen(criteria, after) / len(after) * most >= 1


def _wanted(criteria: Criteria, after: Sequence[Evidence]) -> int:
    """How many runs like these show enough; as many as there are if they do."""
    if share_seen(criteria, after) >= 1:
        return len(after)
    mean = window_total(after) / len(after)
    if mean <= 0:
        return len(after) + 1
    least = POOLED_RUNS if any(is_short(e.window) for e in after) else 1
    return max(least, len(after) + 1, math.ceil(needed_window(criteria, after) / mean - 1e-9))


def _mean_duration(runs: Sequence[Evidence]) -> float:
    """Seconds that a run takes; not a number if none has a duration."""
    known = [e.duration_s for e in runs if e.duration_s]
    return math.fsum(known) / len(known) if known else math.nan


def text(criteria: Criteria, before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """What becomes of a trial whose runs are too short; None if `max_runs` whole windows are enough."""
    if criteria.max_runs < 2 or any(e.window is None for e in after):
        return None
    wanted, needed = _wanted(criteria, after), needed_window(criteria, after)
    if wanted <= criteria.max_runs and not any(is_short(e.window) for e in after):
        return None
    mean = f"a run of the trial has {window_total(after) / len(after):.1f} s of steady window"
    if wanted <= most_runs(criteria, before, after):
        return f"{POOLED}: {mean}, so about {wanted} runs make up {needed:g} s, the start-up of each left out"
    return (
        f"{NOT_POOLED}: {mean}, and the {wanted} runs that {needed:g} s take would use the device for longer "
        f"than {criteria.max_runs} runs of the baseline (max_runs)"
    )


def holds(before: Sequence[Evidence], min_window: float, max_runs: int) -> float | None:
    """How many times as fast a trial may be if its windows are pooled; None if that is not known.

    Its runs are taken to start up as long as the baseline's. 1 if none can be pooled.
    """
    if max_runs < 2 or not before:
        return None
    if any(e.window is None or e.outcome is Outcome.ENDED_BY_PLAN for e in before):
        return None
    window, duration = window_total(before) / len(before), _mean_duration(before)
    if math.isnan(duration):
        return None
    longest = window / LEAST_POOLED_S
    start = duration - window
    if min_window > 0 and start > 0:
        longest = min(longest, (max_runs * duration / min_window - 1) * window / start)
    return max(1.0, longest)
