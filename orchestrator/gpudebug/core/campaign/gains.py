"""What the accepted changes brought together, and what is still missing to the reference or the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import GPU_UTIL, Metric


class AcceptedStep(NamedTuple):
    """An accepted hypothesis with its verdict; None if no runs support it."""

    hypothesis: int
    title: str
    intervention: str
    verdict: Mapping[str, Any] | None


def gain(
    metric: Metric,
    accepted: Sequence[AcceptedStep],
    *,
    now: float | None,
    reference: float | None,
    target: float | None,
    together: Mapping[str, Any] | None = None,
) -> dict[str, object] | None:
    """Return the way from the first baseline to `now`, the figure of the baseline with all that is `accepted`
    (in that order); None if neither is known. All figures in the metric's own unit.

    `gap` is what is missing from `now` to `gap_to`, the reference or without one the target: percentage
    points for utilisation, else the ratio still to be gained; nothing is missing below 0 or 1. `gained` is
    what the changes brought `together`, a CombinedGain's JSON: with it both ends are those that were measured
    for it, so that `start` and `gained` make `now`. What is not known is None: steps do not add up to it.
    """
    start = figure_of(metric, accepted[0].verdict, "before") if accepted else now
    ends = _ends(metric, together or {})
    if ends is not None and now is not None:
        start, now = ends
    if start is None and now is None:
        return None
    goal, goal_name = (reference, "reference") if reference is not None else (target, "target")
    gap, delta = _way(metric, now, goal), (together or {}).get("delta")
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "lower": metric.lower,
        "start": start,
        "accepted": [_told(metric, step) for step in accepted],
        "now": now,
        "reference": reference,
        "target": target,
        "gap": gap,
        "gap_to": goal_name if goal is not None else None,
        "gap_text": _gap_text(metric, gap, goal_name),
        "gained": delta["value"] if delta else None,
        "gained_text": (numbers.points(delta) if metric.points else numbers.factor(delta))
        if accepted
        else None,
        "gained_why": (together or {}).get("why"),
        "gained_notes": list((together or {}).get("notes") or ()),
        "start_text": numbers.figure(metric, start),
        "now_text": numbers.figure(metric, now),
        "reference_text": numbers.figure(metric, reference),
        "target_text": numbers.figure(metric, target),
    }


def _ends(metric: Metric, together: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the figures that a known combined gain lies between."""
    keys = ("before", "after") if metric.points else ("metric_before", "metric_after")
    start, end = (together.get(key) for key in keys)
    return None if together.get("delta") is None or start is None or end is None else (start, end)


def _told(metric: Metric, step: AcceptedStep) -> dict[str, object]:
    """`change_text` is the improvement that its trial measured, with its interval."""
    verdict = step.verdict
    return {
        "hypothesis": step.hypothesis,
        "title": step.title,
        "intervention": step.intervention,
        "before": figure_of(metric, verdict, "before"),
        "after": figure_of(metric, verdict, "after"),
        "change_text": numbers.UNKNOWN if verdict is None else numbers.improvement(verdict),
    }


def figure_of(metric: Metric, verdict: Mapping[str, Any] | None, side: str) -> float | None:
    """Return the metric's figure of one side of a trial; None if the trial was judged by another metric."""
    if verdict is None or verdict.get("metric", GPU_UTIL) != metric.name:
        return None
    found = verdict.get(f"metric_{side}")
    if found is None and metric.points:
        found = verdict.get(side)
    return None if found is None else float(found)


def _way(metric: Metric, start: float | None, end: float | None) -> float | None:
    """Return the improvement from one figure to another: points, or a ratio above 1 if the end is better."""
    if start is None or end is None:
        return None
    if not metric.points and (start <= 0 or end <= 0):
        return None
    return metric.improvement(metric.scale(end) - metric.scale(start))


def _gap_text(metric: Metric, gap: float | None, goal: str) -> str:
    if gap is None:
        return numbers.UNKNOWN
    if gap <= (0 if metric.points else 1):
        return f"the {goal} is reached"
    return f"{numbers.gain(metric, gap)} below the {goal}" if metric.points else f"{gap:.2f}x to the {goal}"
