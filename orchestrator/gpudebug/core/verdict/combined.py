"""What all accepted changes together are worth: measured as one, never the sum of what each was worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates import (
    Criteria,
    TrialCase,
    TrialSetting,
    mean,
    measure,
    utilisations,
    values_of,
)


class Combined(NamedTuple):
    """The baseline before the first acceptance and the one of today. `delta` is the metric's (pp, or a ratio
    above 1 if it is better), `ratio` of throughput; None if a run lacks its figure. The means are of
    utilisation (percent), of the metric and of progress a second, which counts `unit`."""

    delta: Estimate | None
    ratio: Estimate | None
    before: float | None
    after: float | None
    metric_before: float | None
    metric_after: float | None
    throughput_before: float | None
    throughput_after: float | None
    unit: str | None


def combined(metric: Metric, before: Sequence[Evidence], after: Sequence[Evidence]) -> Combined:
    """The contrast of two baselines, looked at once; each has at least one run."""
    criteria = Criteria(
        success=0.0,
        failure=0.0,
        loss="any",
        throughput="any",
        min_window=0.0,
        max_runs=1,
        metric=metric.name,
        direction="lower" if metric.lower else "higher",
    )
    case = measure(TrialCase(criteria, TrialSetting(), tuple(before), tuple(after)))
    return Combined(
        delta=case.delta,
        ratio=case.ratio,
        before=mean(utilisations(before)),
        after=mean(utilisations(after)),
        metric_before=metric.mean(values_of(metric, before)),
        metric_after=metric.mean(values_of(metric, after)),
        throughput_before=mean(case.rates.before),
        throughput_after=mean(case.rates.after),
        unit=case.rates.unit,
    )
