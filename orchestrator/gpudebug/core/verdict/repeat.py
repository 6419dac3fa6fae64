"""The same code measured twice: whether the two figures contradict each other, and what was otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import Estimate, Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict import load
from gpudebug.core.verdict.machine import machine_apart

_LONGER = 2.0
"""Windows whose lengths differ by more than this are named: a rate over another stretch of the training."""


def contradict(metric: Metric, one: Estimate, other: Estimate) -> bool:
    """Whether two independent figures of one gain are further apart than their intervals let them be.

    Their difference has the root of the sum of squares of both half-widths as its own 95 % half-width. Both
    are points, or ratios, which are compared by their logarithms. Without bounds nothing contradicts.
    """
    sides = [_on_scale(metric, each) for each in (one, other)]
    known = [side for side in sides if side is not None]
    if len(known) < 2:
        return False
    (value, half), (value_of_other, half_of_other) = known
    return abs(value - value_of_other) > math.hypot(half, half_of_other)


def worse(metric: Metric, now: Estimate, then: Estimate) -> bool:
    """Whether the gain is smaller now, beyond what both intervals leave open."""
    return now.value < then.value and contradict(metric, now, then)


def unchanged(metric: Metric, estimate: Estimate) -> bool:
    """Whether an interval holds no difference: 0 points, or a ratio of 1."""
    if estimate.low is None or estimate.high is None:
        return True
    return estimate.low <= (0.0 if metric.points else 1.0) <= estimate.high


def _on_scale(metric: Metric, estimate: Estimate) -> tuple[float, float] | None:
    """Value and half-width on the scale on which differences add up; None without bounds."""
    if estimate.low is None or estimate.high is None:
        return None
    if metric.points:
        return estimate.value, (estimate.high - estimate.low) / 2
    if min(estimate.value, estimate.low, estimate.high) <= 0:
        return None
    return math.log(estimate.value), math.log(estimate.high / estimate.low) / 2


def otherwise(then: Sequence[Evidence], now: Sequence[Evidence]) -> list[str]:
    """What was otherwise around runs of the same code, a phrase each: load, shared device, clock, length."""
    found = [*_load(then, now), *_company(then, now)]
    found += machine_apart(then, now)
    spans = [[e.window.duration_s for e in side if e.window] for side in (then, now)]
    if all(spans):
        before, after = (sum(side) / len(side) for side in spans)
        if max(before, after) > _LONGER * min(before, after):
            found.append(f"windows of {before:.0f} s then, {after:.0f} s now")
    return found


def _load(then: Sequence[Evidence], now: Sequence[Evidence]) -> list[str]:
    levels = load.levels(then, now)
    found = []
    if levels is not None:
        before, after = (sum(side) / len(side) for side in levels)
        if not load.like(before, after):
            found.append(f"others wanted {before:.0%} of the cores then, {after:.0%} now")
    elif any(map(load.is_known, (*then, *now))):
        found.append("what others did on the cores is known of one of them alone")
    shares = [load.share_text(side) for side in (then, now)]
    if None not in shares and any(load.disturbed(e) for e in (*then, *now)):
        found.append(f"others kept the runs from {shares[0]} of their CPU time then, {shares[1]} now")
    held = [[t for e in side if (t := e.conditions.cpu_throttled) is not None] for side in (then, now)]
    means = [sum(side) / len(side) if side else 0.0 for side in held]
    if abs(means[0] - means[1]) > load.HELD:
        found.append(f"a CPU quota held back {means[0]:.0f}% of a core then, {means[1]:.0f}% now")
    return found


def _company(then: Sequence[Evidence], now: Sequence[Evidence]) -> list[str]:
    shared = [any(e.conditions.foreign_procs for e in side) for side in (then, now)]
    if shared[0] == shared[1]:
        return []
    return [f"another process computed on the device {'then' if shared[0] else 'now'}"]
