"""The figures of runs that are compared: which of them there are, and what they come from."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics.metrics import JOULES, Metric
from gpudebug.core.words import Result

# Below the driver's resolution, in percent, a device's busy time says nothing to compare.
IDLE = 1.0
# Throughput: `better` needs a gain that a person would keep; `not_worse` forgives noise.
BETTER_ESTIMATE = 1.03
NOT_WORSE_BOUND = 0.97


def idle(runs: Sequence[Evidence]) -> bool:
    return any(u < IDLE for u in utilisations(runs))


def has_figure(e: Evidence) -> bool:
    return e.utilisation is not None and e.standard_error is not None


def has_metric(metric: Metric, e: Evidence) -> bool:
    return has_figure(e) if metric.points else metric.value(e) is not None


def comparable(metric: Metric, runs: Sequence[Evidence]) -> bool:
    """Tell whether the metric has the same source in all runs."""
    return len({told_by(metric, e) for e in runs}) == 1


def told_by(metric: Metric, e: Evidence) -> str | None:
    """Name the metric's source; of steps only whether it is the log: one of its steps may differ.

    Of energy whether a counter has it or the power over time, which some devices report for a part of the
    time only.
    """
    if metric.name == "samples_per_s":
        return e.samples_by
    if not metric.by_steps:
        return None
    by = e.step_time_by if metric.name in _TIMES else e.steps_by
    steps = "probe" if by == "probe" else "log"
    if metric.name != JOULES:
        return steps
    energy = " and ".join(sorted({d.energy_by for d in e.devices if d.energy_by}))
    return f"{energy} and the steps of the {steps}"


_TIMES = frozenset({"step_time_p50", "step_time_p95"})


def values_of(metric: Metric, runs: Sequence[Evidence]) -> list[float]:
    """Return the metric of the runs that have it, in its own unit."""
    return [v for e in runs if (v := metric.value(e)) is not None]


def utilisations(runs: Sequence[Evidence]) -> list[float]:
    """Of the runs that have one, in percent."""
    return [e.utilisation for e in runs if e.utilisation is not None]


def throughput_result(wanted: str, ratio: Estimate) -> Result:
    """Tell whether throughput is `better` or `not_worse`."""
    assert ratio.low is not None and ratio.high is not None
    if wanted == "not_worse":
        return Result.FAIL if ratio.high < NOT_WORSE_BOUND else Result.PASS
    if ratio.low > 1 and ratio.value >= BETTER_ESTIMATE:
        return Result.PASS
    return Result.FAIL if ratio.high < BETTER_ESTIMATE else Result.UNKNOWN
