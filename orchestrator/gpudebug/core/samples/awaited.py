"""The device that makes the others wait, from what all devices of a run did at the same moments.

Devices that train together end their steps together: while one idles, because its process saves, evaluates or
loads, or works alone, the others are busy at waiting power. It is the one that does not wait. Devices that
idle together, or that have nothing to do with each other, show no such moments. A device that idles also
while the others work, as a desktop's, is no part of the job.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import StatisticsError, correlation, median
from typing import NamedTuple

from gpudebug.core.records import AwaitedDevice, Window
from gpudebug.core.samples.table import Sample
from gpudebug.core.samples.window import Device
from gpudebug.core.samples.working import (
    APART,
    AVERAGED_S,
    IDLE_UTIL,
    PowerReading,
    WorkingShare,
    power_readings,
)
from gpudebug.core.statistics.across import name

BUSY = 75.0
"""Percent of utilisation from which the others count as busy."""
IDLE_PART = 0.25
"""A device idles while it is busy for less than this part of what the others are. Half of the shortest step
that fills a tick stays above it."""
FEWEST = 2
LEAST_SHARE = 0.01
"""So many moments, and so much of the window, make a device one that is waited for."""
ALIKE = 0.1
"""Two moments of unrelated causes last equally long, within a tenth, as rarely as this."""
MOST_OF_IT = 0.5
"""Or moments, however few, that make up this part of the window."""
TIMES_THE_NEXT = 3.0
"""The others wait for it so many times longer than for any other device."""
BY_CHANCE = 0.02
"""If moments fell on devices by chance, so many of one would fall on the same as rarely as this."""
REGULAR = 0.1
"""Intervals are a period if half of them lie within this part of their median."""
FEWEST_INTERVALS = 2
SELDOM = 0.05
"""A device that is above `IDLE_UTIL` for at most this part of the window does all but nothing, or its driver
averages short steps away."""
IN_STEP = 0.5
"""Correlation of its utilisation with the others' power from which such a device works when they do. Over
a minute of readings that are averaged for 2 s, chance reaches it in 1 of 200 devices."""
_ACTIVE = 1.0
_NEAR = 0.25


class _AwaitedSpell(NamedTuple):
    """A moment in which the others waited, and how long they did, in seconds."""

    start: float
    end: float
    lost: float


class _BesideOthers(NamedTuple):
    """A device at one moment beside the medians of the others."""

    at: float
    width: float
    util: float
    power_w: float
    others_util: float
    others_power: float


class _MomentOfAll(NamedTuple):
    """All devices at one moment; the last two are in ascending order."""

    at: float
    width: float
    utils: list[float]
    powers: list[float]
    by_util: list[float]
    by_power: list[float]


def awaited(
    rows: Mapping[Device, Sequence[Sample]], window: Window, shares: Mapping[Device, WorkingShare]
) -> tuple[AwaitedDevice | None, str | None]:
    """The device that the others wait for and how, or None; with the reason if that cannot be known."""
    if len(rows) < 2:
        return None, None
    unknown = next((d for d in rows if shares[d].scale is None), None)
    if unknown is not None:
        return None, f"{name({'index': unknown[0], 'uuid': unknown[1]})}: {shares[unknown].reason}"
    moments = _moments([power_readings(own, window) for own in rows.values()])
    found = [one for n, device in enumerate(rows) if (one := _of(n, device, moments, window, shares))]
    found.sort(key=lambda one: one.share, reverse=True)
    if not found:
        return None, None
    first = found[0]
    if len(found) > 1 and first.share < TIMES_THE_NEXT * found[1].share:
        return None, None
    times = sum(one.times for one in found)
    likely = _by_chance(first.times, times, len(rows)) * ALIKE ** (first.times - 1 if first.alike else 0)
    enough = first.times >= FEWEST and first.share >= LEAST_SHARE and likely <= BY_CHANCE
    return (first, None) if enough or first.share >= MOST_OF_IT else (None, None)


def _of(
    place: int,
    device: Device,
    moments: Sequence[_MomentOfAll],
    window: Window,
    shares: Mapping[Device, WorkingShare],
) -> AwaitedDevice | None:
    """When the others waited for the device at this `place`; None if they never did."""
    if not any(_may_be_out_of_step(m, place) for m in moments):
        return None
    ticks = [
        _BesideOthers(
            m.at,
            m.width,
            m.utils[place],
            m.powers[place],
            _middle(m.by_util, m.utils[place]),
            _middle(m.by_power, m.powers[place]),
        )
        for m in moments
    ]
    others = [d for d in shares if d != device]
    waits = median(scale.middle_w for d in others if (scale := shares[d].scale))
    own = shares[device].scale
    assert own is not None
    waiting = _beside_waiting(ticks, waits)
    used = math.fsum(t.util * t.width for t in ticks) / math.fsum(t.width for t in ticks)
    if not _takes_part(ticks, waiting, used):
        return None
    idle = _idle_spells(ticks, waiting)
    works = _working_spells(ticks, waits, own.middle_w)
    spells, state = (idle, "idle") if _lost(idle) >= _lost(works) else (works, "works")
    if not spells:
        return None
    return AwaitedDevice(
        index=device[0],
        uuid=device[1],
        state=state,
        share=round(min(1.0, _lost(spells) / window.duration_s), 4),
        times=len(spells),
        length_s=round(length := _lost(spells) / len(spells), 3),
        alike=_alike([s.lost for s in spells]),
        every_s=every if (every := _period(spells, ticks)) and every > length else None,
    )


def _may_be_out_of_step(m: _MomentOfAll, place: int) -> bool:
    """Tell whether it may idle or work alone at that moment: cheaply tells that most devices never do."""
    return m.utils[place] < IDLE_PART * m.by_util[-1] or m.by_power[0] < (1 - APART) * m.powers[place]


def _alike(lengths: Sequence[float]) -> bool:
    usual = median(lengths)
    return median(abs(length - usual) for length in lengths) <= ALIKE * usual


def _lost(spells: Sequence[_AwaitedSpell]) -> float:
    return math.fsum(s.lost for s in spells)


def _moments(devices: Sequence[Sequence[PowerReading]]) -> list[_MomentOfAll]:
    """Return the readings of one device, each beside the latest of the others."""
    known = [[r for r in readings if r.util is not None] for readings in devices]
    if not all(known):
        return []
    places = range(len(known))
    at = [0] * len(known)
    found = []
    for own in max(known, key=len):
        for i in places:
            series = known[i]
            while at[i] + 1 < len(series) and series[at[i] + 1].at <= own.at + own.width / 2:
                at[i] += 1
        utils = [series[n].util or 0.0 for series, n in zip(known, at, strict=True)]
        powers = [series[n].power_w for series, n in zip(known, at, strict=True)]
        found.append(_MomentOfAll(own.at, own.width, utils, powers, sorted(utils), sorted(powers)))
    return found


def _middle(ordered: Sequence[float], without: float) -> float:
    """Return the median of the others than one of this value, which is among the ordered ones."""
    half = (len(ordered) - 1) // 2
    upper = ordered[half + (without <= ordered[half])]
    if len(ordered) % 2 == 0:
        return upper
    lower = half - 1
    return (ordered[lower + (without <= ordered[lower])] + upper) / 2


def _idles(tick: _BesideOthers) -> bool:
    """It idles while the others are busy."""
    return tick.others_util >= BUSY and tick.util < IDLE_PART * tick.others_util


def _beside_waiting(ticks: Sequence[_BesideOthers], waits: float) -> list[bool]:
    """Whether the others are at waiting power, by the time that it is averaged over, earlier or later."""

    def since(ordered: Iterable[_BesideOthers]) -> list[float]:
        last, found = math.inf, []
        for tick in ordered:
            last = tick.at if tick.others_power < waits else last
            found.append(abs(tick.at - last))
        return found

    later = reversed(since(reversed(ticks)))
    return [min(both) <= AVERAGED_S for both in zip(since(ticks), later, strict=True)]


def _takes_part(ticks: Sequence[_BesideOthers], waiting: Sequence[bool], used: float) -> bool:
    """Tell whether the device has to do with the others' work: it does not idle for most of the time that
    they work. If it is all but idle, and they always wait, it has to work when they do."""
    if used < _ACTIVE:
        return False
    beside_work = [t for t, waits in zip(ticks, waiting, strict=True) if not waits and t.others_util >= BUSY]
    if beside_work:
        idle = math.fsum(t.width for t in beside_work if _idles(t))
        return idle <= MOST_OF_IT * math.fsum(t.width for t in beside_work)
    active = math.fsum(t.width for t in ticks if t.util > IDLE_UTIL)
    return active > SELDOM * math.fsum(t.width for t in ticks) or _in_step(ticks)


def _in_step(ticks: Sequence[_BesideOthers]) -> bool:
    """Drivers average either figure over up to a second, which is made up for by averaging the other one."""
    utils, powers = [t.util for t in ticks], [t.others_power for t in ticks]
    over = max(1, round(AVERAGED_S / median(t.width for t in ticks)))
    slow = _trailing(powers, over)
    pairs = ((utils, powers), (utils, slow), (_trailing(utils, over), slow))
    try:
        return max(correlation(*pair) for pair in pairs) >= IN_STEP
    except StatisticsError:  # one of them never changes
        return False


def _trailing(values: Sequence[float], over: int) -> list[float]:
    """Means of so many values up to each."""
    sums = [0.0, *accumulate(values)]
    return [(sums[i] - sums[max(0, i - over)]) / min(i, over) for i in range(1, len(sums))]


def _idle_spells(ticks: Sequence[_BesideOthers], waiting: Sequence[bool]) -> list[_AwaitedSpell]:
    """Where the device idles and the others are busy, at waiting power by the time that it is averaged over.

    What it idles is the area between its utilisation and theirs, beside their waiting: that stays where a
    driver averages it.
    """
    held = _groups([_idles(t) and waits for t, waits in zip(ticks, waiting, strict=True)])
    spells = []
    for n, (first, last) in enumerate(held):
        after = held[n - 1][1] + 1 if n else 0
        before = held[n + 1][0] - 1 if n + 1 < len(held) else len(ticks) - 1
        start, end = ticks[first].at - ticks[first].width, ticks[last].at
        near = [
            t
            for t in ticks[max(after, first - (first - after) // 2) : last + (before - last) // 2 + 1]
            if start - AVERAGED_S < t.at <= end + AVERAGED_S and t.others_util > 0
        ]
        lost = math.fsum(t.width * max(0.0, 1 - t.util / t.others_util) for t in near)
        spells.append(_AwaitedSpell(start, end, lost))
    return spells


def _working_spells(ticks: Sequence[_BesideOthers], waits: float, works: float) -> list[_AwaitedSpell]:
    """Return where it works, and the others are busy at waiting power, well below its own."""
    alone = [
        min(t.util, t.others_util) >= BUSY
        and t.others_power < min(waits, (1 - APART) * t.power_w)
        and t.power_w > works
        for t in ticks
    ]
    found = [(first, last) for first, last in _groups(alone) if last > first]
    return [
        _AwaitedSpell(start := ticks[first].at - ticks[first].width, end := ticks[last].at, end - start)
        for first, last in found
    ]


def _groups(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last index of each unbroken row of true ones."""
    found: list[tuple[int, int]] = []
    for i, flag in enumerate(flags):
        if flag and found and found[-1][1] == i - 1:
            found[-1] = (found[-1][0], i)
        elif flag:
            found.append((i, i))
    return found


def _period(spells: Sequence[_AwaitedSpell], ticks: Sequence[_BesideOthers]) -> float | None:
    """Seconds from one to the next if they come regularly."""
    gaps = [after.start - before.start for before, after in pairwise(spells)]
    if len(gaps) < FEWEST_INTERVALS:
        return None
    usual = median(gaps)
    tick = median(t.width for t in ticks)
    if median(abs(gap - usual) for gap in gaps) > max(REGULAR * usual, tick):
        return None
    near = [gap for gap in gaps if abs(gap - usual) <= max(_NEAR * usual, tick)]
    return round(math.fsum(near) / len(near), 2)


def _by_chance(times: int, of: int, devices: int) -> float:
    """Return the chance that at least `times` of so many moments fall on one and the same of the devices."""
    part = 1 / devices
    tail = math.fsum(
        math.comb(of, k) * part**k * (1 - part) ** (of - k) for k in range(times, of + 1) if of <= 1000
    )
    return devices * tail
