"""How a run learned beside its loss: rewards and own patterns of its log, series of files that it wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite

from gpudebug.core.inside.probe import TrainingProcess
from gpudebug.core.lazy import regex
from gpudebug.core.records import LearningSeries
from gpudebug.core.statistics import loss_curve
from gpudebug.core.statistics.units import BY_BACKWARD, BY_LOG, ENOUGH_LOSSES, LOSS, MIN_POINTS, REWARD
from gpudebug.core.trainlog.logger_files import WrittenScalars
from gpudebug.core.trainlog.names import classify
from gpudebug.core.trainlog.quantities import quantity
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.trainlog.series import Point
from gpudebug.core.trainlog.work import AGAIN
from gpudebug.core.words import LOG


def series(
    log: LogSummary, written: Sequence[LearningSeries] = (), trained: TrainingProcess | None = None
) -> tuple[LearningSeries, ...]:
    """Return the reward of the log (of training, else of evaluations), the user's own patterns, what the run
    has `written` into files, and the loss on which the process that `trained` called backward: before the
    losses of files that have fewer values."""
    known = [r for r in log.work.rewards if r.count >= MIN_POINTS]
    rewards = [r for r in known if r.phase != "val"] or known
    found = [of_points(REWARD, r.name, BY_LOG, r.points, r.over, r.count) for r in rewards[:1]]
    found += [
        of_points(f"{LOG}{name}", name, BY_LOG, points, None, len(points))
        for name, points in log.extra.items()
        if len(points) >= MIN_POINTS
    ]
    fine = [one for one in written if one.metric != LOSS or one.points >= ENOUGH_LOSSES]
    coarse = [one for one in written if one not in fine]
    return (*found, *fine, *(() if log.of_learner else _of_backward(trained)), *coarse)


def _of_backward(process: TrainingProcess | None) -> list[LearningSeries]:
    """Return the loss as backward got it, of a training with one objective: none of a policy that acts, nor
    of several optimizers."""
    if process is None or len(process.losses) < ENOUGH_LOSSES:
        return []
    acts = any(beat.counters.get("acts_n") for beat in process.beats[-1:])
    optimizers = process.facts.get("optimizers")
    if acts or not isinstance(optimizers, list) or len(optimizers) > 1:
        return []
    points = [Point(step, loss, None) for step, loss in process.losses]
    return [of_points(LOSS, "training loss", BY_BACKWARD, points, "optimizer steps", len(points))]


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


_DIGIT = regex(r"[0-9]")
_OF_A_CRITIC = regex(r"value|critic|policy|actor|(?<!cross)(?<!cross[-_ ])entropy", re.I)
"""The losses of a reinforcement learner: none of them need fall where it learns."""
MAX_SERIES = 4
"""Of each metric so many series of one file are kept, those with the plainest names."""


def chosen(found: WrittenScalars, source: str) -> list[LearningSeries]:
    """Return the rewards and the training losses of a file, the plainest names first.

    One whose steps begin again is none: it may go on from an earlier run, or count within an epoch.
    """
    ranked = []
    for order, (name, values) in enumerate(found.values.items()):
        role = _metric(name)
        if role is not None and len(values) >= MIN_POINTS and began_again(values) is None:
            ranked.append((role[0], role[1], -len(values), order, name))
    kept: dict[str, list[LearningSeries]] = {}
    for metric, _, _, _, name in sorted(ranked):
        points = [Point(step, value, None) for step, value in found.values[name]]
        one = of_points(metric, name, source, points, f"the steps of {source}", len(points))
        if len(kept.setdefault(metric, [])) < MAX_SERIES:
            kept[metric].append(one)
    return [one for metric in (REWARD, LOSS) for one in kept.get(metric, ())]


def restarts(found: WrittenScalars, source: str) -> str | None:
    """Say which figure of learning is not used, as its steps begin again."""
    for name, values in found.values.items():
        if _metric(name) is not None and (again := began_again(values)) is not None:
            return f"{source}: the steps of {name} begin again at {again[1]} after {again[0]}: it is not used"
    return None


def began_again(values: Sequence[tuple[int, float]]) -> tuple[int, int] | None:
    """(step before, step after) where steps fall to less than half of what they had reached."""
    return next(((a, b) for (a, _), (b, _) in pairwise(values) if b < AGAIN * a), None)


def _metric(name: str) -> tuple[str, int] | None:
    """(reward or loss, how plain the name is); None of any other, and of validation.

    A name of more than one line, or with escapes, would be printed as such.
    """
    if not name.isprintable():
        return None
    zeroed = _DIGIT.sub("0", name)
    found = quantity(zeroed)
    if found is not None and found.kind == "reward" and found.phase != "val":
        return REWARD, found.tier
    if _OF_A_CRITIC.search(name):
        return None
    # Not all that lies in a folder of losses is one: `losses/clipfrac`.
    group, _, own = zeroed.rpartition("/")
    role = classify(own if "losses" in group else zeroed)
    return (LOSS, role.tier) if role.kind == "loss" and role.phase != "val" else None
