"""Whether a busy device works: its power beside its utilisation.

A collective that waits, a spin loop and tiny kernels keep a device at 100 % utilisation and draw little more
than an idle one. The working share is the time in which a device draws what it draws in its working phases.
It follows from means of power, never from one reading: drivers average power over up to a second, which moves
no mean. The scale comes from the recording itself, as `PowerScale` says, and from no figure of one card.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from gpudebug.core.records import Window
from gpudebug.core.samples.table import Sample
from gpudebug.core.samples.window import Device
from gpudebug.core.statistics.assumed import assumed

MIN_READINGS = 20
"""Fewer readings of power do not show how it is distributed."""
APART = assumed("power_apart")
"""Two levels differ by more than this part of the upper one: load, clocks and temperature move the power of
one kind of work by up to a tenth."""
TWO_LEVELS = 0.8
"""Part of the variance that lies between two levels. Readings that are spread evenly have 0.75, normal noise
0.64."""
WORKING_SPAN = assumed("working_span")
"""Work that fills a device draws at least this part of what its limit leaves above idle."""
WORKING_TIMES = assumed("working_times")
"""Where no limit is known: at least so many times what the device draws idle beside the work."""
IDLE_UTIL = assumed("idle_points")
"""Percent of utilisation up to which a device idles: drivers average it, too."""
AVERAGED_S = assumed("averaged_s")
"""Drivers average power over up to a second: NVML's is such a mean from Ampere on."""
_SETTLED = 0.9
_LOWEST = 0.05
_LOWER = 0.1
_LONGEST_GAP = 3.0
"""Usual gaps that a reading counts for at most."""


class PowerReading(NamedTuple):
    """One reading of a device: seconds since launch, utilisation in percent or None, W, and the seconds for
    which it counts."""

    at: float
    util: float | None
    power_w: float
    width: float


class PowerScale(NamedTuple):
    """What a device draws while it waits and while it works, in W."""

    waiting_w: float
    working_w: float

    @property
    def middle_w(self) -> float:
        return (self.waiting_w + self.working_w) / 2

    @property
    def span_w(self) -> float:
        return self.working_w - self.waiting_w

    def share(self, mean_w: float) -> float:
        """Return the working share at this mean power, 0 to 1."""
        return min(1.0, max(0.0, (mean_w - self.waiting_w) / self.span_w))


class WorkingShare(NamedTuple):
    """The share of time, 0 to 1, and the scale that it is read on; `reason` says why it is unknown."""

    share: float | None = None
    scale: PowerScale | None = None
    reason: str | None = None


class PowerLevels(NamedTuple):
    """Power split in two, in W, and how much of the variance lies between the parts.

    `low_w` is the lowest tenth of the lower part, `high_w` the median of the upper one: what lies between
    them is a driver's average over a change of level.
    """

    low_w: float
    high_w: float
    between: float

    @property
    def apart(self) -> bool:
        return self.high_w - self.low_w > APART * self.high_w

    @property
    def two(self) -> bool:
        return self.apart and self.between >= TWO_LEVELS


class IdlePower(NamedTuple):
    """What a device draws idle, in W; `beside` says that it idled in the window, with clocks up."""

    power_w: float
    beside: bool


def power_readings(rows: Sequence[Sample], window: Window | None) -> list[PowerReading]:
    """One device's readings of power in the window, all of them without one."""
    known = [r for r in rows if r.power_w is not None]
    if len(known) < 2:
        return []
    gaps = [after.elapsed - before.elapsed for before, after in pairwise(known)]
    usual = median(gaps)
    widths = [usual, *(min(gap, _LONGEST_GAP * usual) for gap in gaps)]
    return [
        PowerReading(r.elapsed, r.gpu_util, r.power_w, width)
        for r, width in zip(known, widths, strict=True)
        if r.power_w is not None and width > 0 and (window is None or _inside(r.elapsed, window))
    ]


def _inside(at: float, window: Window) -> bool:
    return window.start_s < at <= window.end_s


def levels(readings: Sequence[PowerReading]) -> PowerLevels | None:
    """Split power where most of its variance lies between the parts (Otsu); None if it never varies."""
    ordered = sorted((r.power_w, r.width) for r in readings)
    total = math.fsum(width for _, width in ordered)
    energy = math.fsum(value * width for value, width in ordered)
    if total <= 0 or ordered[0][0] == ordered[-1][0]:
        return None
    mean = energy / total
    variance = math.fsum(width * (value - mean) ** 2 for value, width in ordered) / total
    best, upper = 0.0, 0
    time = below = 0.0
    for i, ((value, width), (after, _)) in enumerate(pairwise(ordered)):
        time, below = time + width, below + value * width
        if value == after:
            continue
        low, high = below / time, (energy - below) / (total - time)
        between = (time / total) * (1 - time / total) * (high - low) ** 2 / variance
        if between > best:
            best, upper = between, i + 1
    high = ordered[(upper + len(ordered)) // 2][0]
    return PowerLevels(ordered[int(_LOWER * upper)][0], high, best)


def working(
    rows: Mapping[Device, Sequence[Sample]],
    window: Window,
    limits: Mapping[Device, float | None] | None = None,
    names: Mapping[Device, str] | None = None,
) -> dict[Device, WorkingShare]:
    """Return the working share of each device in the window. `rows` are all of the run, `limits` enforced
    power limits in W; devices with equal `names` are one model, which shares a scale."""
    inside = {device: power_readings(own, window) for device, own in rows.items()}
    model = {device: (names or {}).get(device, "") for device in rows}
    groups = {name: [d for d in rows if model[d] == name] for name in model.values()}
    idle = {name: _idle(group, inside, rows) for name, group in groups.items()}
    splits = {d: levels(own) for d, own in inside.items() if len(own) >= MIN_READINGS}
    return {
        device: _share(
            inside[device],
            splits.get(device),
            [split for d in groups[model[device]] if (split := splits.get(d)) and split.two],
            idle[model[device]].get(device),
            (limits or {}).get(device),
        )
        for device in rows
    }


def _share(
    own: Sequence[PowerReading],
    split: PowerLevels | None,
    siblings: Sequence[PowerLevels],
    idle: IdlePower | None,
    limit: float | None,
) -> WorkingShare:
    if not own:
        return WorkingShare(reason="no reading of power")
    if len(own) < MIN_READINGS:
        return WorkingShare(reason=f"only {len(own)} readings of power in the window, {MIN_READINGS} needed")
    mean = mean_power(own)
    scale = _scale(mean, split, siblings, idle, limit)
    if scale is None:
        known = "its power limit is" if idle else "its power limit and what it draws idle are"
        what = f"power is alike all the time ({mean:.0f} W), also beside it"
        return WorkingShare(reason=f"{what}, and {known} unknown")
    return WorkingShare(scale.share(mean), scale)


def _scale(
    mean: float,
    split: PowerLevels | None,
    siblings: Sequence[PowerLevels],
    idle: IdlePower | None,
    limit: float | None,
) -> PowerScale | None:
    """Of the device's own two levels; else of those of the sibling that draws most; else from what it draws
    idle to half of what its limit leaves above that, or to three times as much."""
    expected = _expected(idle, limit)
    highest = max(siblings, key=lambda level: level.high_w, default=None)
    if highest is not None and (expected is None or highest.high_w >= expected.middle_w):
        # Levels below those of its siblings, or of what work draws, are those of idling and waiting.
        shared = PowerScale(highest.low_w, highest.high_w)
        if split is not None and split.two and split.high_w >= shared.middle_w:
            return PowerScale(split.low_w, split.high_w)
        return shared
    top = split.high_w if split is not None and split.apart else 0.0
    if expected is not None:
        return expected._replace(working_w=max(top, expected.working_w))
    if split is not None and split.apart:
        return PowerScale(split.low_w, split.high_w)
    surely = WORKING_TIMES * idle.power_w if idle else WORKING_SPAN * limit if limit else math.inf
    return PowerScale(idle.power_w if idle else 0.0, mean) if mean >= surely else None


def _expected(idle: IdlePower | None, limit: float | None) -> PowerScale | None:
    """Between idling and work, as far as nothing but the idle device and its limit tell; None if unknown."""
    if idle is None or idle.power_w <= 0:
        return None
    if limit is not None and limit > idle.power_w:
        return PowerScale(idle.power_w, idle.power_w + WORKING_SPAN * (limit - idle.power_w))
    return PowerScale(idle.power_w, WORKING_TIMES * idle.power_w) if idle.beside else None


def _idle(
    devices: Sequence[Device],
    inside: Mapping[Device, Sequence[PowerReading]],
    rows: Mapping[Device, Sequence[Sample]],
) -> dict[Device, IdlePower]:
    """For each device of one model: its own in the window, else of the first that idled there, else its own
    at any time, else of the first that ever did. Empty if none ever did."""
    beside = {d: IdlePower(w, beside=True) for d in devices if (w := _idle_power(inside[d])) is not None}
    known = beside or {
        d: IdlePower(w, beside=False)
        for d in devices
        if (w := _idle_power(power_readings(rows[d], None))) is not None
    }
    first = next(iter(known.values()), None)
    return {d: known.get(d, first) for d in devices} if first is not None else {}


def _idle_power(readings: Sequence[PowerReading]) -> float | None:
    """The lowest power of readings by which the device had idled for as long as power is averaged over."""
    known = []
    idles = 0.0
    for r in readings:
        if r.util is None or r.util > IDLE_UTIL:
            idles = 0.0
            continue
        idles += r.width
        if idles >= _SETTLED * AVERAGED_S:
            known.append(r.power_w)
    known.sort()
    return known[int(_LOWEST * (len(known) - 1))] if known else None


def mean_power(readings: Sequence[PowerReading]) -> float:
    """Time-weighted, in W."""
    return math.fsum(r.power_w * r.width for r in readings) / math.fsum(r.width for r in readings)
