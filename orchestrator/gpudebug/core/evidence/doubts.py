"""What is wrong with the work and the rewards that a log shows, told from the log alone."""

from __future__ import annotations

from itertools import combinations
from math import isfinite

from gpudebug.core.evidence.work import APART, COVERED, MIN_SEEN
from gpudebug.core.trainlog.work import LoggedWork, WorkCounter


def doubts(work: LoggedWork) -> tuple[str, ...]:
    """Counters that begin again, stop or start in the middle, or disagree; rewards that are no numbers."""
    counters = [one for one in work.counters if one.seen >= MIN_SEEN]
    whole = [one for one in counters if (one.began_again or _part(one, work.lines)) is None]
    return (
        *(_restart(one) for one in counters if one.began_again),
        *(part for one in counters if (part := _part(one, work.lines)) and not one.began_again),
        *_disagreeing(whole),
        *(
            f"{reward.name} is NaN or infinite in some of its values"
            for reward in work.rewards
            if not all(isfinite(p.value) for p in reward.points)
        ),
    )


def _restart(one: WorkCounter) -> str:
    before, after = one.began_again or (0, 0)
    return f"{one.name} began again at {after} after {before}: what it counts is unknown"


def _part(one: WorkCounter, lines: int) -> str | None:
    first, last = one.lines
    if last < COVERED * lines:
        return f"{one.name} is printed until line {last} of {lines} only: the unit may have changed"
    if first > COVERED * lines:
        return f"{one.name} is printed from line {first} of {lines} on only: the unit may have changed"
    return None


def _disagreeing(counters: list[WorkCounter]) -> list[str]:
    return [
        f"two counts of {one.unit} disagree: {one.name} {one.last} and {other.name} {other.last}"
        for one, other in combinations(counters, 2)
        if one.unit == other.unit and one.last and not 1 / APART <= other.last / one.last <= APART
    ]
