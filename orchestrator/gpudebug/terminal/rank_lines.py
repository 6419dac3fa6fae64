"""The ranks of a training as text for people: who waits for whom, and why."""

from __future__ import annotations

from statistics import median

from gpudebug.core.answers.ranks import RanksFinding, StragglerRank
from gpudebug.core.statistics import numbers


def ranks(found: RanksFinding) -> list[str]:
    """Return what they wait, the straggler or why none is named, and what is odd, a line each."""
    return [_head(found), *_straggler(found), *_late(found), *(f"Ranks: {note}" for note in found.notes)]


def facts(found: RanksFinding) -> list[str]:
    """Return what speaks for the straggler's cause."""
    return [*found.straggler.for_] if found.straggler else []


def _head(found: RanksFinding) -> str:
    known = [row.wait_share for row in found.rows if row.wait_share is not None]
    seen = f"Ranks: {found.reported} of {found.world_size} reported"
    if not known:
        return f"{seen}; what they wait for each other is unknown"
    least, middle, most = (numbers.percent(100 * value) for value in (min(known), median(known), max(known)))
    shares = f"wait for each other {least} (least), {middle} (median), {most} (most) of the time"
    if all(row.device == "cpu" for row in found.rows):
        return f"{seen}; they {shares}"
    return f"{seen}; their hosts {shares}, and what their devices wait is not seen"


def _straggler(found: RanksFinding) -> list[str]:
    if found.abstains:
        return [f"No straggler is named: {found.abstains}"]
    return [_named(found.straggler)] if found.straggler else ["No rank holds the others up"]


def _named(one: StragglerRank) -> str:
    where = f" on {one.node}" if one.node else ""
    kind = "Straggler" if one.certain else "Possible straggler"
    gap = numbers.percent(100 * one.gap)
    return f"{kind}: rank {one.rank}{where}, {one.cause}: {one.title}; they wait {gap} of the time for it"


def _late(found: RanksFinding) -> list[str]:
    if found.late is None:
        return []
    took = numbers.duration(found.late.seconds)
    return [f"Late start: rank {found.late.rank} began last; the others had waited {took} longer or more"]
