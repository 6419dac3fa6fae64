"""The order of a trial's runs. `status` asks for it, so nothing here imports the records' classes.

A trial runs T T A T A, T T A T A: runs of the change (T) and of the baseline (A). It is the order, and no
random wait, that keeps what comes and goes beside the runs from meeting one side alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpudebug.core.words import Word

BASELINE_RUNS = 2
"""Runs with which a record of the baseline begins."""
REFERENCE_RUNS = 1
"""Runs of the reference: it sets the target, and no change is judged against it."""
STALE = 3
"""Runs after which the level is not believed any more: a run of the baseline is made first."""


class NextRun(Word):
    """What a trial needs: one more run of it, one of the baseline beside it, or nothing."""

    TRIAL = "trial"
    BASELINE = "baseline"
    DONE = "done"


def runs_of(role: str) -> int:
    """Return the runs that record a baseline of this role."""
    return REFERENCE_RUNS if role == "reference" else BASELINE_RUNS


def following(trials: int, most: int, *, closed: bool, since: int) -> NextRun:
    """Return what comes after so many of at most `most` runs of the change. `closed`: the last run was of the
    baseline, made `since` places before the next one."""
    if closed:
        return NextRun.BASELINE if since > STALE else NextRun.TRIAL
    return NextRun.TRIAL if trials % 3 == 1 and trials < most else NextRun.BASELINE


def planned(most: int) -> Iterator[NextRun]:
    """Yield all runs of a trial that goes on to its end, of which `most` are of the change."""
    trials, closed = 0, True
    while trials < most or not closed:
        step = following(trials, most, closed=closed, since=1)
        trials, closed = trials + (step is NextRun.TRIAL), step is NextRun.BASELINE
        yield step
