"""What a command is about to spend of the device, as it says before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.verdict.turns import NextRun, planned
from gpudebug.core.words import counted

LIKELY = 5
"""Runs of a trial that are likely at most: T, or T T A, or T T A T A."""
_MINUTES_FROM = 90.0
_NAMED = 3


def span(seconds: float) -> str:
    """`55 s`, `3.7 min` or `2.1 h`."""
    if seconds < _MINUTES_FROM:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < _MINUTES_FROM else f"{minutes / 60:.1f} h"


def of_baseline(runs: int, seconds: Sequence[float], *, made: int = 0) -> str:
    """What a baseline of `runs` runs, of which some are `made`, still takes; `seconds` are of like runs."""
    left = runs - made
    if not seconds:
        return f"{counted(left, 'run')} of the unchanged workload; how long one takes is not known yet"
    each = math.fsum(seconds) / len(seconds)
    more = " more" if made else ""
    runs_text = f"{left}{more} run{'s' if left != 1 else ''}"
    return f"{runs_text} of about {span(each)}: {span(left * each)} of the device"


def of_trial(first: NextRun, seconds: Sequence[float], most: int, *, least: int = 1) -> str:
    """Return what a trial that begins with `first`, of `least` to `most` runs of the change, takes; `seconds`
    are those of the baseline's runs."""
    begun = [first] if first is NextRun.BASELINE else []
    whole = [*begun, *planned(most)]
    fewest, likely = len(begun) + least, min(len(begun) + LIKELY, len(whole))
    more = f", …, at most {len(whole)}" if len(whole) > _NAMED else ""
    text = f"runs: {', '.join(whole[:_NAMED])}{more}; {fewest} to {likely} are likely"
    if not seconds:
        return text
    each = math.fsum(seconds) / len(seconds)
    return f"{text}, {span(fewest * each)} to {span(likely * each)} of the device"
