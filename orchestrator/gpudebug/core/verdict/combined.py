"""What all accepted changes together are worth: measured as one, never the sum of what each was worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict import load
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
    """Two bases, before and after the accepted changes. `delta` is the metric's (pp, or a ratio above 1 if
    it is better), `ratio` of throughput; None if a run lacks its figure. The means are of utilisation
    (percent), of the metric and of progress a second, which counts `unit`: before and difference make after.
    `load` says that both sides did not meet the same strangers; None if they did, or nothing tells."""

    metric: Metric
    delta: Estimate | None
    ratio: Estimate | None
    before: float | None
    after: float | None
    metric_before: float | None
    metric_after: float | None
    throughput_before: float | None
    throughput_after: float | None
    unit: str | None
    load: str | None = None


def combined(
    metric: Metric,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting | None = None,
    devices: str | None = None,
) -> Combined:
    """The contrast of two bases, looked at once; each has at least one run. `setting` is what a trial of all
    changes would have: the unit of work, and what of them sets how much a step takes.
    `devices` is the campaign's `criteria.devices`."""
    criteria = Criteria(
        success=0.0,
        failure=0.0,
        loss="any",
        throughput="any",
        min_window=0.0,
        max_runs=1,
        metric=metric.name,
        direction="lower" if metric.lower else "higher",
        devices=devices,
    )
    case = measure(TrialCase(criteria, setting or TrialSetting(), tuple(before), tuple(after)))
    return Combined(
        metric=case.metric,
        delta=case.delta,
        ratio=case.ratio,
        before=mean(utilisations(case.before)),
        after=mean(utilisations(case.after)),
        metric_before=case.metric.mean(values_of(case.metric, case.before)),
        metric_after=case.metric.mean(values_of(case.metric, case.after)),
        throughput_before=_middle(case.rates.before),
        throughput_after=_middle(case.rates.after),
        unit=case.rates.unit,
        load=_load(case.before, case.after),
    )


def _middle(rates: Sequence[float]) -> float | None:
    """Geometric, as the ratio is of such means: one times the other is the third."""
    if not rates or min(rates) <= 0:
        return None
    return rates[0] * math.exp(math.fsum(math.log(rate / rates[0]) for rate in rates) / len(rates))


def _load(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    alike = load.comparable(before, after)
    if alike or not any(map(load.is_known, (*before, *after))):
        return None
    if alike is None:
        return load.unknown_text(before, after)
    shares = [load.share_text(side) for side in (before, after)]
    levels = load.levels(before, after)
    assert levels is not None
    wanted = [f"{sum(side) / len(side):.0%}" for side in levels]
    text = f"others wanted {wanted[0]} of the cores beside the one side and {wanted[1]} beside the other"
    return text if None in shares else f"{text}, and took {shares[0]} and {shares[1]} of their CPU time"
