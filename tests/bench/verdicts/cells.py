"""How often trials of one true delta ended how, and how sure that figure is."""

from __future__ import annotations

import math
from dataclasses import dataclass

DELTAS = (0, 10, 15, 20, 25, 30)
# A baseline is recorded once and serves this many hypotheses.
HYPOTHESES = 10
Z = 1.959964


@dataclass(frozen=True)
class Cell:
    """Counts of verdicts over `trials`; `seconds` of device time and `delta` in pp are means over them."""

    trials: int
    validated: int
    rejected: int
    seconds: float
    delta: float = math.nan
    runs: float = math.nan

    def __add__(self, other: Cell) -> Cell:
        trials = self.trials + other.trials

        def mean(mine: float, others: float) -> float:
            return (mine * self.trials + others * other.trials) / trials

        return Cell(
            trials,
            self.validated + other.validated,
            self.rejected + other.rejected,
            mean(self.seconds, other.seconds),
            mean(self.delta, other.delta),
            mean(self.runs, other.runs),
        )


def wilson(count: int, trials: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927, *JASA* 22); it holds the share whatever the rounding."""
    share, z2 = count / trials, Z * Z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))
