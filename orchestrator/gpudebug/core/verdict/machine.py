"""What the machine did otherwise on two sides of runs: each device against itself, and the cores' quota."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpudebug.core.records import DeviceEvidence, Evidence
from gpudebug.core.samples.conditions import (
    CLOCK_APART,
    OF_ITSELF,
    OF_ITSELF_SHARE,
    SLOWING,
    THROTTLED_APART,
    apart,
)
from gpudebug.core.statistics.across import name
from gpudebug.core.words import is_stand_in

_Side = Sequence[DeviceEvidence]


class MachineDifference(NamedTuple):
    """What the machine did otherwise on two sides, as it is printed: `clocks of GPU 3`, `1410` and `1200`,
    ` MHz`."""

    what: str
    before: str
    after: str
    unit: str

    @property
    def text(self) -> str:
        return f"{self.what} {self.before} and {self.after}{self.unit}"


def machine_apart(before: Sequence[Evidence], after: Sequence[Evidence]) -> tuple[str, ...]:
    """Return what differs of clocks, throttling and quota; what is not known does not differ.

    Runs without figures of each device are compared by the worst of their devices.
    """
    sides = [[e.conditions for e in runs] for runs in (before, after)]
    found = devices_apart(before, after)
    if found is None:
        return apart(*sides)
    return (*(one.text for one in found), *apart(*sides, devices=False))


def devices_apart(
    before: Sequence[Evidence], after: Sequence[Evidence]
) -> tuple[MachineDifference, ...] | None:
    """Return what differs of the clocks and throttling of each device; None without figures of any.

    A device is compared to itself: its mean clock of one side is more than a tenth below that of the other,
    unless it idled or was at its power limit there, as a device does of itself; or a reason that slows was
    set a quarter of the time more often.
    """
    pairs = list(_pairs(before, after))
    several = len(pairs) > 1
    return tuple(one for old, new in pairs for one in _device(old, new, several)) if pairs else None


def _pairs(before: Sequence[Evidence], after: Sequence[Evidence]) -> Iterator[tuple[_Side, _Side]]:
    """Yield each device of both sides, as all its runs have it, if they tell of clocks or throttling."""
    uuids = dict.fromkeys(d.uuid for e in before for d in e.devices)
    for uuid in uuids:
        old, new = ([d for e in runs for d in e.devices if d.uuid == uuid] for runs in (before, after))
        if any(map(_told, old)) and any(map(_told, new)):
            yield old, new


def _told(device: DeviceEvidence) -> bool:
    return device.sm_clock_mhz is not None or device.throttle is not None


def _device(old: _Side, new: _Side, several: bool) -> Iterator[MachineDifference]:
    of = f" of {name(old[0])}" if several else " of"
    clocks = _clock(old), _clock(new)
    if None not in clocks and _slower(old, new):
        yield MachineDifference(f"clocks{of}", f"{clocks[0]:.0f}", f"{clocks[1]:.0f}", " MHz")
    for reason in SLOWING:
        shares = _share(reason, old), _share(reason, new)
        if shares[0] is None or shares[1] is None or abs(shares[0] - shares[1]) <= THROTTLED_APART:
            continue
        who = f"{name(old[0])} " if several else ""
        yield MachineDifference(
            f"{who}throttled by {reason}", f"{shares[0]:.0%}", f"{shares[1]:.0%}", " of the time"
        )


def _slower(old: _Side, new: _Side) -> bool:
    """Tell whether one side's clock is lower than the other's, and not by what the device does of itself."""
    before, after = _clock(old) or 0.0, _clock(new) or 0.0
    slower = old if before < after else new
    of_itself = math.fsum(_share(reason, slower) or 0.0 for reason in OF_ITSELF)
    return abs(before - after) > CLOCK_APART * max(before, after) and of_itself < OF_ITSELF_SHARE


def _clock(side: _Side) -> float | None:
    known = [d.sm_clock_mhz.mean for d in side if d.sm_clock_mhz is not None]
    return math.fsum(known) / len(known) if known else None


def _share(reason: str, side: _Side) -> float | None:
    known = [d.throttle for d in side if d.throttle is not None]
    return math.fsum(shares.get(reason, 0.0) for shares in known) / len(known) if known else None


HELD = 5.0
"""Percent of one core's time for which a quota may hold a run back without a word."""
FULL = 100.0


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
    on_cores = all(is_stand_in(d.uuid) for e in runs for d in e.devices)
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


def others_text(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
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
