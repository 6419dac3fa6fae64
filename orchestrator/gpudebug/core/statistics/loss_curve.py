"""A run's loss over its steps, kept small, and the distance between two sides at equal steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING

from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.intervals import Prior, difference

if TYPE_CHECKING:
    from gpudebug.core.records import Estimate

Curve = Sequence[tuple[float, float]]
"""(step, loss), in the order of steps."""

POINTS = 40
POINTS_PLANNED = 160
"""The same of a run that gpudebug ended: a trial four times as fast has a quarter of it in common with the
baseline."""
LARGEST = 1e100
"""A loss beyond this has exploded, and its square may be more than a float holds."""
# Fewer points than this in the part that is compared are chance.
MIN_POINTS = 3
# What is compared: the last quarter of the steps that all runs made; the first eighth is the start.
LAST = 0.25
FIRST = 0.125
# Before runs show how far apart they end, of what the loss falls by, or of its size if it does not fall.
PRIOR_SHARE = assumed("loss_apart")
PRIOR_LEVEL = assumed("loss_level")
PRIOR_WEIGHT = assumed("loss_runs")


def curve(points: Iterable[tuple[int | None, float]], most: int = POINTS) -> tuple[tuple[float, float], ...]:
    """At most `most` (mean step, mean loss) of equal spans of steps; empty if steps are not known.

    A point without a step, or with a loss that is not finite or beyond `LARGEST`, is left out.
    """
    known = sorted((step, value) for step, value in points if step is not None and abs(value) <= LARGEST)
    if not known or known[0][0] == known[-1][0]:
        return ()
    first, last = known[0][0], known[-1][0]
    spans: dict[int, list[tuple[int, float]]] = {}
    for step, value in known:
        spans.setdefault(min(most - 1, most * (step - first) // (last - first)), []).append((step, value))
    return tuple((_mean([s for s, _ in span]), _mean([v for _, v in span])) for span in spans.values())


@dataclass(frozen=True, slots=True)
class Distance:
    """The trial's loss less the baseline's over `steps`, and what the baseline's fell by before."""

    value: Estimate
    fall: float
    steps: tuple[float, float]


def distance(before: Sequence[Curve], after: Sequence[Curve]) -> Distance | str:
    """Return how far apart two sides end over the last quarter of their common steps; why not, as text.

    One value a run counts; the interval owes its width to the spread between runs, with a prior of 5 % of
    the fall.
    """
    curves = (*before, *after)
    if not all(curves):
        return "a run's log prints no steps with its loss"
    low = max(c[0][0] for c in curves)
    high = min(c[-1][0] for c in curves)
    if high <= low:
        return "the runs have no steps in common"
    start = high - LAST * (high - low)
    ends = [[_between(c, start, high) for c in side] for side in (before, after)]
    if any(len(values) < MIN_POINTS for side in ends for values in side):
        return f"fewer than {MIN_POINTS} losses in the steps that all runs made"
    begins = [_between(c, low, low + FIRST * (high - low)) for c in before]
    if not all(begins):
        return "the baseline's log prints no loss at its start"
    old, new = ([_mean(values) for values in side] for side in ends)
    fall = _mean([_mean(values) for values in begins]) - _mean(old)
    spread = max(old) - min(old)
    if fall <= spread:
        return "the baseline's loss falls by less than its runs differ"
    prior = Prior(sd=PRIOR_SHARE * fall, weight=PRIOR_WEIGHT)
    return Distance(difference(old, new, prior), fall, (start, high))


def level(before: Sequence[Curve], after: Sequence[Curve]) -> Estimate | str:
    """Return how far the trial's loss is above the baseline's over the last quarter of their common steps.

    As a share of the baseline's; why it is not known, as text. For losses that do not fall: `distance`
    measures by their fall.
    """
    found = _ends(before, after)
    if isinstance(found, str):
        return found
    old, new = found
    size = abs(_mean(old))
    if size <= 0:
        return "the baseline's loss is 0"
    prior = Prior(sd=PRIOR_LEVEL, weight=PRIOR_WEIGHT)
    return difference([v / size for v in old], [v / size for v in new], prior)


def _ends(before: Sequence[Curve], after: Sequence[Curve]) -> tuple[list[float], list[float]] | str:
    """One mean loss a run of each side, over the last quarter of the steps that all made."""
    curves = (*before, *after)
    if not all(curves):
        return "a run's log prints no steps with its loss"
    low, high = max(c[0][0] for c in curves), min(c[-1][0] for c in curves)
    if high <= low:
        return "the runs have no steps in common"
    ends = [[_between(c, high - LAST * (high - low), high) for c in side] for side in (before, after)]
    if any(len(values) < MIN_POINTS for side in ends for values in side):
        return f"fewer than {MIN_POINTS} losses in the steps that all runs made"
    return [_mean(values) for values in ends[0]], [_mean(values) for values in ends[1]]


def _between(curve: Curve, low: float, high: float) -> list[float]:
    return [loss for step, loss in curve if low <= step <= high]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


Begin = Sequence[tuple[int, float]]
"""The first (step, loss) of a run, as printed."""

LEAST = 2
STEPS = 20
"""So many steps that all runs print are compared."""
FLOAT = 1e-5
"""Of a loss: what another order of summation makes of it in single precision."""
SHOWN = 10
"""Digits by which losses have to differ from line to line: with fewer, other inputs may print the same."""
FALLS = 20
"""Digits by which they have to fall: with fewer, less may be trained, and print the same."""


def same(begins: Sequence[Begin]) -> bool | None:
    """Tell whether all runs print the same losses at the first 20 steps that they have in common, to the last
    printed digit.

    None if they have fewer, and if the same losses hardly change, which shows nothing: they have to differ
    from line to line by ten of the last digit, and to fall by twenty, and by more than from line to line.
    """
    runs = [dict(begin) for begin in begins]
    if len(runs) < LEAST:
        return None
    steps = sorted(set(runs[0]).intersection(*runs[1:]))[:STEPS]
    if len(steps) < STEPS:
        return None
    values = [[run[step] for step in steps] for run in runs]
    digit = max(_last_digit(values[0]), FLOAT * max(map(abs, values[0])))
    alike = all(max(at) - min(at) <= 1.001 * digit for at in zip(*values, strict=True))
    return (_tells(values[0], digit) or None) if alike else False


def _tells(values: Sequence[float], digit: float) -> bool:
    """Tell whether losses change enough for other inputs, or other weights, to show in them."""
    # Second differences: what a loss does beside falling steadily.
    lines = zip(values, values[1:], values[2:], strict=False)
    between = median(abs(a - 2 * b + c) for a, b, c in lines)
    half = len(values) // 2
    fall = math.fsum(values[:half]) / half - math.fsum(values[half:]) / (len(values) - half)
    return between >= SHOWN * digit and fall >= max(FALLS * digit, between)


def _last_digit(values: Sequence[float]) -> float:
    """One of the last decimal place that any of the values has."""
    return 10.0 ** min(int(Decimal(repr(value)).as_tuple().exponent) for value in values)
