"""The figures of learning that one run showed beside its loss: rewards, own patterns, series of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from gpudebug.core.records import LearningSeries
from gpudebug.core.statistics import loss_curve
from gpudebug.core.statistics.units import BY_LOG, MIN_POINTS, REWARD
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.trainlog.series import Point
from gpudebug.core.words import LOG


def series(log: LogSummary, written: Sequence[LearningSeries] = ()) -> tuple[LearningSeries, ...]:
    """Return the reward of the log (of training, else of evaluations), the user's own patterns, then what the
    run has `written` into files."""
    known = [r for r in log.work.rewards if r.count >= MIN_POINTS]
    rewards = [r for r in known if r.phase != "val"] or known
    found = [of_points(REWARD, r.name, BY_LOG, r.points, r.over, r.count) for r in rewards[:1]]
    found += [
        of_points(f"{LOG}{name}", name, BY_LOG, points, None, len(points))
        for name, points in log.extra.items()
        if len(points) >= MIN_POINTS
    ]
    return (*found, *written)


def of_points(
    metric: str, name: str, source: str, points: Iterable[Point], over: str | None, count: int
) -> LearningSeries:
    """Return a series of printed or written values, kept small."""
    known = list(points)
    values = [p.value for p in known]
    finite = [v for v in values if isfinite(v)]
    return LearningSeries(
        metric=metric,
        name=name,
        source=source,
        points=count,
        first=finite[0] if finite else None,
        last=finite[-1] if finite else None,
        finite=len(finite) == len(values),
        over=over,
        curve=loss_curve.curve((p.step, p.value) for p in known if isfinite(p.value)),
    )
