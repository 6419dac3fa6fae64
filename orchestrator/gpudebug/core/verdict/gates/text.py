"""Estimates as gates print them."""

from __future__ import annotations

from gpudebug.core.records import Estimate
from gpudebug.core.statistics.metrics import Metric


def estimate_text(estimate: Estimate, unit: str, *, signed: bool = False, digits: int = 1) -> str:
    """`+33.6pp (95% CI +31.2 to +36.0)`."""
    sign = "+" if signed else ""

    def text(value: float) -> str:
        # Adding 0.0 turns a rounded -0.0 into 0.0.
        return f"{round(value, digits) + 0.0:{sign}.{digits}f}"

    value = f"{text(estimate.value)}{unit}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} (95% CI {text(estimate.low)} to {text(estimate.high)})"


def bounds_text(metric: Metric, estimate: Estimate) -> str:
    """`12.0 to 18.4 pp`, or `1.02x to 1.31x`."""
    assert estimate.low is not None and estimate.high is not None
    if metric.points:
        return f"{estimate.low:.1f} to {estimate.high:.1f} pp"
    return f"{estimate.low:.2f}x to {estimate.high:.2f}x"


def improvement_text(metric: Metric, estimate: Estimate) -> str:
    """Return the delta of a metric: in pp, or `1.31x (95% CI 1.24 to 1.38)`."""
    if metric.points:
        return estimate_text(estimate, "pp", signed=True)
    return estimate_text(estimate, "x", digits=2)
