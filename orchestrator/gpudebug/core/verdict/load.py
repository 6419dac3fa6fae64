"""What others took of the cores of runs: whether it counts, and which runs were under a like load.

What counts is what a run waited for because of others, not what they used of idle cores: a training with
cores to spare is alone enough beside anybody. Runs that did wait are compared only with runs that met as many
others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.records import Evidence
from gpudebug.core.samples.window import SHARED
from gpudebug.core.words import Outcome, Trend

# The share of the CPU time that a run wanted and did not get because of others, from which on it counts: runs
# of one command differ by as much.
STOLEN = 0.05
# Waiting of less than this, in percent of the time of one core, slows nothing down whatever its share.
LEAST_WAIT = 2.0
# Runs whose others wanted shares of the cores further apart than this met another load; where cores queue, of
# the larger demand.
APART = 0.15
# As many cores must be idle for a run, on average, that does not tell how long it waited.
SPARE_CORES = 1.0

# A run that got less than this share of its time says nothing of how fast it would be.
_LEAST_LEFT = 0.05

# Percent of one core's time for which a quota may hold a run back without a word.
HELD = 5.0

_BAD = frozenset({Trend.NAN, Trend.DIVERGING})


class Chosen(NamedTuple):
    """The runs that are compared: `fresh` counts the last of the baseline's, `left_out` are the others."""

    before: tuple[Evidence, ...]
    after: tuple[Evidence, ...]
    fresh: int
    left_out: tuple[Evidence, ...] = ()


def stolen(e: Evidence) -> float | None:
    """The share of the CPU time that the run wanted and others kept it from; None if unknown."""
    c = e.conditions
    if c.cpu_stolen is None or c.cpu_cores is None:
        return None
    wanted = c.cpu_cores + c.cpu_stolen / 100
    return c.cpu_stolen / 100 / wanted if wanted > 0 else 0.0


def disturbed(e: Evidence) -> bool | None:
    """Whether others may have slowed the run down; None if it is not known what they did."""
    c, share = e.conditions, stolen(e)
    if share is not None and c.cpu_stolen is not None:
        return share > STOLEN and c.cpu_stolen > LEAST_WAIT
    if c.foreign_cpu is None:
        return None
    return c.foreign_cpu > SHARED and not _cores_to_spare(e)


def _cores_to_spare(e: Evidence) -> bool:
    c = e.conditions
    if c.cores is None or c.cpu_cores is None or c.foreign_cpu is None:
        return False
    return c.cores * (1 - c.foreign_cpu / 100) - c.cpu_cores >= SPARE_CORES


# What others wanted of the cores; what they used where a run does not say what they wanted.
_COLUMNS = ("foreign_demand", "foreign_cpu")


def levels(*sides: Sequence[Evidence]) -> tuple[list[float], ...] | None:
    """What others wanted of the cores in each run, a share of all these; what they used if a run does not say
    what they wanted. None if one does not say that either."""
    for column in _COLUMNS:
        found = [[_level(e, column) for e in side] for side in sides]
        known = [[value for value in side if value is not None] for side in found]
        if [len(side) for side in known] == [len(side) for side in sides]:
            return tuple(known)
    return None


def _level(e: Evidence, column: str) -> float | None:
    value = e.conditions.foreign_demand if column == "foreign_demand" else e.conditions.foreign_cpu
    return value / 100 if value is not None else None


def is_known(e: Evidence) -> bool:
    """Whether the run tells what others did on its cores."""
    return any(_level(e, column) is not None for column in _COLUMNS)


def like(one: float, other: float) -> bool:
    """Whether two levels are of a like load."""
    return abs(one - other) <= APART * max(1.0, one, other)


def comparable(before: Sequence[Evidence], after: Sequence[Evidence]) -> bool | None:
    """Whether the sides may be compared: no run waited for others, or both sides met a like load.

    None if a run waited, and another does not tell what it met: that it met as much is not known.
    """
    if not any(disturbed(e) for e in (*before, *after)):
        return True
    found = levels(before, after)
    return like(*(_mean(side) for side in found)) if found is not None else None


def met_more(before: Sequence[Evidence], after: Sequence[Evidence]) -> bool:
    """Whether others wanted no less beside the trial, and kept its runs from no smaller share of their time.

    What it gained was in spite of them. False if that is unknown, or if the device was shared.
    """
    shares = [[stolen(e) for e in side] for side in (before, after)]
    found = levels(before, after)
    known = [[share for share in side if share is not None] for side in shares]
    if found is None or any(len(a) < len(b) for a, b in zip(known, shares, strict=True)):
        return False
    if any(e.conditions.foreign_procs for e in (*before, *after)):
        return False
    return _mean(known[1]) >= _mean(known[0]) and _mean(found[1]) >= _mean(found[0])


def held_up(before: Sequence[Evidence], after: Sequence[Evidence]) -> float:
    """How many times as fast the trial may be if others keep it from no more of its time than the baseline.

    1 if they did not keep it from more, or if a run does not say. A change that spreads the work over more
    processes meets more of a neighbour on the same cores.
    """
    shares = [[stolen(e) for e in side] for side in (before, after)]
    known = [[share for share in side if share is not None] for side in shares]
    if any(len(a) < len(b) for a, b in zip(known, shares, strict=True)) or not any(map(disturbed, after)):
        return 1.0
    left = [1 - _mean(side) for side in known]
    return max(1.0, left[0] / max(left[1], _LEAST_LEFT))


def differs(before: Sequence[Evidence], after: Sequence[Evidence]) -> bool:
    """Whether a run met another load than another, whether it waited or not; also if one tells what it met
    and another does not. Where none tells, nothing is known to differ."""
    runs = [*before, *after]
    found = levels(runs)
    if found is None:
        return any(map(is_known, runs))
    return not like(min(found[0]), max(found[0]))


def choose(before: Sequence[Evidence], after: Sequence[Evidence], fresh: int) -> Chosen:
    """The runs of a trial that can be compared; all of them if they are alike, or if no choice makes them so.

    Runs are left out only if a baseline run was made beside the trial: those remain that met the same load as
    it. Where the load changed from run to run, all that were made beside one another remain.
    """
    whole = Chosen(tuple(before), tuple(after), fresh)
    if not fresh or comparable(before, after):
        return whole
    options = [_near(whole, i) for i in range(len(before) - fresh, len(before))]
    beside = Chosen(whole.before[-fresh:], whole.after, fresh, whole.before[:-fresh])
    found = [o for o in (*options, beside) if o is not None and o.left_out and comparable(o.before, o.after)]
    # As many of the trial's runs as can be, then as many of the baseline's.
    return max(found, key=lambda o: (len(o.after), len(o.before)), default=whole)


def _near(whole: Chosen, at: int) -> Chosen | None:
    """The runs that met the load of the baseline's run `at`; None if none of the trial's did."""
    sides = whole.before, whole.after
    marked = ([_marked(e, whole.before[at], column) for e in side] for column in _COLUMNS for side in sides)
    old, new = next((pair for pair in zip(marked, marked, strict=True) if any(pair[1])), ([], []))
    if not new:
        return None
    before = [e for e, near in zip(whole.before, old, strict=True) if near]
    after = [e for e, near in zip(whole.after, new, strict=True) if near or not _sound(e)]
    kept = sum(old[len(whole.before) - whole.fresh :])
    out = [
        e
        for side, near in ((whole.before, old), (whole.after, new))
        for e, n in zip(side, near, strict=True)
        if not n and (side is whole.before or _sound(e))
    ]
    return Chosen(tuple(before), tuple(after), kept, tuple(out))


def _marked(e: Evidence, here: Evidence, column: str) -> bool:
    """Whether both runs tell this of the load, and it is alike."""
    level, other = _level(e, column), _level(here, column)
    return level is not None and other is not None and like(level, other)


def _sound(e: Evidence) -> bool:
    """Whether nothing but the run's figures would be lost with it: what fails by itself is never left out."""
    return e.failure is None and e.outcome is not Outcome.CRASHED and e.loss.trend not in _BAD


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def demand_text(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """What others wanted of the cores on both sides, which may be far more than they got; None if unknown."""
    sides = [[e.conditions.foreign_demand for e in side] for side in (before, after)]
    known = [[value for value in side if value is not None] for side in sides]
    if any(len(a) < len(b) or not a for a, b in zip(known, sides, strict=True)):
        return None
    return "they wanted {:.0f}% of the cores in the baseline, {:.0f}% in the trial".format(*map(_mean, known))


def unknown_text(before: Sequence[Evidence], after: Sequence[Evidence]) -> str:
    """Which run waited for others, and which does not tell what it met."""
    runs = (*before, *after)
    waited = next(e for e in runs if disturbed(e))
    silent = next(e for e in runs if levels([waited, e]) is None)
    share = share_text([waited])
    much = f"kept run {waited.run} from {share} of its CPU time" if share else f"disturbed run {waited.run}"
    return f"other processes {much}, and what they did beside run {silent.run} is unknown"


def share_text(runs: Sequence[Evidence]) -> str | None:
    """The mean share that others kept the runs from, in percent."""
    known = [share for e in runs if (share := stolen(e)) is not None]
    return f"{_mean(known):.1%}" if known else None


# Of the time that others took from runs, how far it varies from run to run before runs have shown it.
SWAY = 0.25


def sway(before: Sequence[Evidence], after: Sequence[Evidence]) -> float:
    """By how much runs vary because others do not take the same of each, as a share of their figures.

    What two or three runs beside strangers have in common by luck is no measure of it. 0 if none waited.
    """
    runs = (*before, *after)
    shares = [share for e in runs if disturbed(e) and (share := stolen(e)) is not None]
    return SWAY * math.fsum(shares) / len(runs)


def quota_text(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """How much a control group's quota held the runs back, if it did."""
    held = [[t for e in side if (t := e.conditions.cpu_throttled) is not None] for side in (before, after)]
    if max([0.0, *held[0], *held[1]]) <= HELD:
        return None
    shown = (f"{_mean(side):.0f}%" if side else "an unknown share" for side in held)
    return "a CPU quota held the runs back: {} of a core's time in the baseline, {} in the trial".format(
        *shown
    )


def left_out_text(found: Chosen) -> str | None:
    """Which runs are not compared, and why."""
    if not found.left_out:
        return None
    names = ", ".join(sorted(e.run for e in found.left_out))
    shown = levels(found.left_out, (*found.before, *found.after))
    if shown is None:
        return f"left out: {names}, under a load that is not known, or another one"
    out, kept = (f"{_mean(side):.0%}" for side in shown)
    return (
        f"left out: {names}, under another load (others wanted {out} of the cores, {kept} beside the trial)"
    )
