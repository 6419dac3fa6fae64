"""What a trial may come to where others held one side up more than the other.

No figure fails by what others kept the trial from, and a gain beyond what they kept the baseline from is one.
"""

from __future__ import annotations

import math

from gpudebug.core.records import Estimate
from gpudebug.core.verdict import load
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.figures import throughput_result, utilisations
from gpudebug.core.words import Result


def possible_delta(case: TrialCase) -> Estimate | None:
    """The delta that the trial may have; that of the case if others held it up no more than the baseline."""
    factor = _factor(case)
    if case.delta is None or factor == 1:
        return case.delta
    if not case.metric.points:
        return _times(case.delta, factor)
    levels = utilisations(case.after)
    return _plus(case.delta, (factor - 1) * math.fsum(levels) / max(1, len(levels)))


def possible_ratio(case: TrialCase) -> Estimate | None:
    """The ratio of throughput that the trial may have."""
    return _times(case.ratio, _factor(case)) if case.ratio is not None else None


def outweighed(case: TrialCase) -> bool:
    """Whether delta and throughput pass even if others made twice as much of them as they can have.

    The baseline met no less of them, and what they kept it from beyond the trial counts by its square: ranks
    that wait for one another, and caches that are shared, lose more than what threads waited for a core.
    """
    c, delta, ratio = case.criteria, case.delta, case.ratio
    if delta is None or not load.met_more(case.after, case.before):
        return False
    factor = load.held_up(case.after, case.before) ** 2
    levels = utilisations(case.before)
    made = (factor - 1) * math.fsum(levels) / max(1, len(levels))
    delta = _plus(delta, -made) if case.metric.points else _times(delta, 1 / factor)
    assert delta.low is not None
    if delta.value < c.success or delta.low <= c.failure:
        return False
    if ratio is None or c.throughput == "any":
        return True
    return throughput_result(c.throughput, _times(ratio, 1 / factor)) is Result.PASS


def hides_delta(case: TrialCase) -> bool:
    """Whether nothing but what others kept the trial from leaves the delta open."""
    possible, c = possible_delta(case), case.criteria
    return (
        case.delta is not None
        and too_small(case.delta, c.failure, c.success)
        and (possible is not None and not too_small(possible, c.failure, c.success))
    )


def too_small(delta: Estimate, failure: float, success: float) -> bool:
    """Whether a delta is below `failure`, and its interval below `success`."""
    assert delta.high is not None
    return delta.value < failure and delta.high < success


def text(case: TrialCase) -> str:
    """What others kept both sides from, and what to do."""
    before, after = load.share_text(case.before), load.share_text(case.after)
    again = f"run `gpudebug reopen {case.number}` on a quieter host"
    return f"other processes kept the trial from {after} of its CPU time, the baseline from {before}; {again}"


def _factor(case: TrialCase) -> float:
    return load.held_up(case.before, case.after) if case.setting.loads else 1.0


def _times(found: Estimate, factor: float) -> Estimate:
    assert found.low is not None and found.high is not None
    return Estimate(value=found.value * factor, low=found.low * factor, high=found.high * factor)


def _plus(found: Estimate, gain: float) -> Estimate:
    assert found.low is not None and found.high is not None
    return Estimate(value=found.value + gain, low=found.low + gain, high=found.high + gain)
