"""What other processes took of a run's time on its cores, and how much utilisation that leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import Evidence

HELD = 5.0
"""Percent of one core's time for which a quota may hold a run back without a word."""
FULL = 100.0
_CPU = "CPU"


def share(e: Evidence) -> float | None:
    """Percent of the CPU time that the run wanted and others kept it from; None if it did not record that."""
    c = e.conditions
    if c.cpu_stolen is None or c.cpu_cores is None:
        return None
    wanted = c.cpu_cores + c.cpu_stolen / 100
    return c.cpu_stolen / wanted if wanted > 0 else 0.0


def mean_share(runs: Sequence[Evidence]) -> float | None:
    """Of the runs that recorded it; None if none did."""
    known = [found for e in runs if (found := share(e)) is not None]
    return math.fsum(known) / len(known) if known else None


def reachable(runs: Sequence[Evidence]) -> float | None:
    """Percent of utilisation that others leave to runs like these, where the cores are the device; else None.

    A GPU is nobody else's: a run beside which somebody computes on it counts for nothing.
    """
    on_cores = all(d.uuid == _CPU for e in runs for d in e.devices)
    taken = mean_share(runs)
    return FULL - taken if on_cores and taken is not None else None


def no_room(runs: Sequence[Evidence], level: float | None, success: float) -> str | None:
    """Why utilisation cannot show a success of so many points above `level` beside others; None if it can."""
    left = reachable(runs)
    if left is None or level is None or level + success <= left or left > FULL - 1:
        return None
    return (
        f"other processes take {FULL - left:.0f}% of the time that these runs want of the cores: at most "
        f"{left:.0f}% can be reached beside them, the baseline is at {level:.1f}%, and criteria.success asks "
        f"for {success:g} points more"
    )


def text(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """Return what others kept both sides from; None if a side does not say."""
    shares = [mean_share(runs) for runs in (before, after)]
    if shares[0] is None or shares[1] is None:
        return None
    return (
        f"other processes kept the baseline from {shares[0]:.1f}% of its CPU time, the trial from "
        f"{shares[1]:.1f}%"
    )


def quota_text(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """Return how much a control group's quota held the runs back, if it did."""
    held = [[t for e in side if (t := e.conditions.cpu_throttled) is not None] for side in (before, after)]
    if max([0.0, *held[0], *held[1]]) <= HELD:
        return None
    shown = (f"{math.fsum(side) / len(side):.0f}%" if side else "an unknown share" for side in held)
    return "a CPU quota held the runs back: {} of a core's time in the baseline, {} in the trial".format(
        *shown
    )
