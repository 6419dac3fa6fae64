"""Whether runs printed the same losses at the same steps: then their models saw and trained the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from statistics import median

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
