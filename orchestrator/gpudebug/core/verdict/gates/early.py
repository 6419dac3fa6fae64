"""Whether a run that `early_stop` ended well before `min_window` shows that success is out of reach."""

from __future__ import annotations

import math
from dataclasses import replace

from gpudebug.core.records import Evidence
from gpudebug.core.samples.window import RISE_S
from gpudebug.core.verdict.gates import held_up, stand_in
from gpudebug.core.verdict.gates.case import TrialCase, contrast_of
from gpudebug.core.words import Outcome

SHORTEST_S = 12.0
"""A shorter window says nothing."""
LEAST_RISE = 0.5
"""Of its whole mean, a baseline's beginning that is lower than this is no ramp, but another thing."""


def is_hopeless(case: TrialCase) -> bool:
    """Whether the trial's last run, ended early, would fail the delta with all of its window.

    What a beginning reads too little, as devices and caches warm up, is taken from the baseline's runs after
    as long a window. They are recorded of the mean over devices: judged by other devices no run is hopeless.
    """
    last = case.after[-1]
    if case.setting.rule < 5 or last.outcome is not Outcome.ENDED_EARLY or not case.metric.points:
        return False
    if case.criteria.devices is not None:
        return False
    if case.delta is None or last.window is None or last.window.duration_s < SHORTEST_S:
        return False
    factor = _risen(case, last.window.duration_s)
    if factor is None or last.utilisation is None:
        return False
    risen = last.model_copy(update={"utilisation": last.utilisation / factor})
    found = contrast_of(case, [*case.after[:-1], risen])
    # A run is looked at many times: twice as many looks as there may be runs.
    high = replace(found, looks=2 * found.looks).interval.high
    assert high is not None
    hidden = held_up.hides_delta(case) or stand_in.hides_delta(case)
    return found.value < case.criteria.failure and high < case.criteria.success and not hidden


def _risen(case: TrialCase, seconds: float) -> float | None:
    """The share of their whole mean that the baseline's runs showed after as long a window; at most 1."""
    shares = [s for e in case.before if (s := _share(e, seconds)) is not None]
    return min(1.0, max(LEAST_RISE, math.fsum(shares) / len(shares))) if shares else None


def _share(e: Evidence, seconds: float) -> float | None:
    if not e.rise or not e.utilisation:
        return None
    return e.rise[min(len(e.rise), max(1, int(seconds / RISE_S))) - 1] / e.utilisation
