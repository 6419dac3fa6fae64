"""Where the CPU stands in for a GPU: utilisation counts what the training process computes beside its model.

A change that moves this work away, or does less of it, gets more done at a lower reading.
"""

from __future__ import annotations

from gpudebug.core.statistics.own_work import LARGE, counted_as_busy
from gpudebug.core.statistics.work_units import rate_for
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.figures import throughput_result
from gpudebug.core.words import Result


def hides_delta(case: TrialCase) -> bool:
    """Tell whether a delta that is too small may be that of a gain: more got done, or that is still open by
    more than what is large."""
    if not case.metric.points or counted_as_busy(case.before) is None:
        return False
    if case.ratio is None or case.ratio.high is None:
        return False
    return is_faster(case) or case.ratio.high >= 1 / (1 - LARGE)


def is_faster(case: TrialCase) -> bool:
    """Tell whether more got done."""
    return case.ratio is not None and throughput_result("better", case.ratio) is Result.PASS


def text(case: TrialCase) -> str:
    """Return what utilisation counts, and which metric shows what the change does."""
    unit = case.setting.work.unit if case.setting.work is not None else None
    return f"{counted_as_busy(case.before)}; set metric: {rate_for(unit)} in gpudebug.yaml"
