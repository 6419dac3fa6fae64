"""What a command is about to spend of the device, as it says before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.statistics.contrast import most_fresh
from gpudebug.core.words import Status, counted

_MINUTES_FROM = 90.0


def span(seconds: float) -> str:
    """`55 s`, `3.7 min` or `2.1 h`."""
    if seconds < _MINUTES_FROM:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < _MINUTES_FROM else f"{minutes / 60:.1f} h"


def _runs(count: int) -> str:
    return counted(count, "run")


def of_baseline(runs: int, seconds: Sequence[float], *, made: int = 0) -> str:
    """What a baseline of `runs` runs, of which some are `made`, still takes; `seconds` are of like runs."""
    left = runs - made
    if not seconds:
        return f"{_runs(left)} of the unchanged workload; how long one takes is not known yet"
    each = math.fsum(seconds) / len(seconds)
    more = " more" if made else ""
    return (
        f"{left}{more} run{'s' if left != 1 else ''} of about {span(each)}: {span(left * each)} of the device"
    )


def again_for_load(max_runs: int) -> int:
    """The most runs of a trial that are made again, as they met another load: nobody knows before if any do.

    A trial of one run has no baseline run beside it that tells one load from another.
    """
    return max_runs if max_runs > 1 else 0


def most_of_trial(max_runs: int) -> int:
    """The most runs that a trial of up to `max_runs` makes, of its own, again for their load and beside it.

    However much the machine has drifted: then the recorded runs are worth none of the fresh ones. Of runs
    that are shorter than the baseline's there may be more, which take no longer.
    """
    return max_runs + again_for_load(max_runs) + most_fresh(max_runs, 0.0)


def of_trial(seconds: Sequence[float], window: float, min_window: float, max_runs: int) -> str:
    """What a trial takes beside a baseline whose runs took `seconds` and had a mean `window`."""
    trials = min(max_runs, max(1, math.ceil(min_window / window))) if window > 0 else max_runs
    fresh = 1 if max_runs > 1 else 0
    again = again_for_load(max_runs)
    most = most_of_trial(max_runs)
    count = f"at most {_runs(most - again)} that count"
    load = f" and {again} under another load" if again else ""
    if not seconds:
        return f"{_runs(trials)} of the trial and {fresh} of the baseline, {count}{load}"
    each = math.fsum(seconds) / len(seconds)
    more = " (more if they are shorter)" if max_runs > 1 else ""
    return (
        f"{trials + fresh} runs of about {span(each)}, {fresh} of the baseline among them: "
        f"{span((trials + fresh) * each)} of the device; "
        f"{count}{more}{load}, {span(most * each)}"
    )


def beside(status: Status, fresh: int) -> str:
    """Why a run of the unchanged workload is made beside a trial with this verdict so far."""
    ordinal = "a baseline run" if not fresh else "one more baseline run"
    if status is Status.VALIDATED:
        return f"recording {ordinal} beside the trial: the machine may have drifted since the baseline"
    if status is Status.REJECTED:
        return f"recording {ordinal} beside the trial: something else may have slowed the trial down"
    return f"recording {ordinal} beside the trial: it narrows the interval more than another trial run"
