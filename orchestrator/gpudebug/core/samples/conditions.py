"""What the samples of a run say of the machine: other processes, clocks, throttling, and broken time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from gpudebug.core.records import Conditions, Window
from gpudebug.core.samples.table import Sample, SampleTable, by_device
from gpudebug.core.statistics.assumed import assumed

Device = tuple[int, str]
_Number = TypeVar("_Number", int, float)

_UNTHROTTLED = frozenset({"", "none"})
SLOWING = ("hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal")
"""Reasons for which a device runs slower than its load needs: heat, or power that it is not given. A power
cap is none of them: at its limit a busy device runs slower of itself."""


def reasons_in(throttle: str) -> frozenset[str]:
    """Return the names in a cell of `throttle`."""
    return frozenset(throttle.split("+")) - _UNTHROTTLED


def observed(
    rows: Sequence[Sample],
    window: Window | None,
    cores: float | None = None,
    *,
    crashed: bool = False,
    nodes: bool = False,
) -> Conditions:
    """The conditions inside the window; of the whole run if there is none. `cores` are those that the run
    may use. Of a run that `crashed` the last moments count for its devices: who was there then may be why.

    A process that was there before the window and not in it has disturbed nothing that counts. What is read
    once a second may be read just behind a short window: that reading covers its end. Of several `nodes`
    whoever is known to be on one is there, also where another cannot tell its own.
    """
    inside = [r for r in rows if window is None or window.start_s <= r.elapsed <= window.end_s]
    behind = [r for r in rows if window is not None and r.elapsed > window.end_s]
    devices = by_device((*inside, *(behind if crashed else ())))
    found = [_of_device(own) for own in devices.values()]
    host = {column: _known(inside, column) or _known(behind, column)[:1] for column in _OF_THE_HOST}
    shared = _most_shared(devices, found)
    return Conditions(
        foreign_procs=_worst([c.foreign_procs for c in found], nodes),
        foreign_share=_worst([c.foreign_share for c in found], nodes),
        foreign_on=shared[0] if shared else None,
        foreign_uuid=shared[1] if shared else None,
        foreign_cpu=_mean(host["foreign_cpu"]),
        sm_clock_mhz=min((c.sm_clock_mhz for c in found if c.sm_clock_mhz is not None), default=None),
        throttle=_worst_shares([c.throttle for c in found if c.throttle is not None]),
        read_mb_s=_mean([r.read_mb_s for r in inside if r.read_mb_s is not None]),
        write_mb_s=_mean([r.write_mb_s for r in inside if r.write_mb_s is not None]),
        cpu_cores=_cores(host["cpu_util"]),
        cores=cores,
        cpu_wait=_mean(host["cpu_wait"]),
        cpu_throttled=_mean(host["cpu_throttled"]),
        cpu_stolen=_mean(host["cpu_stolen"]),
        foreign_demand=_mean(host["foreign_demand"]),
    )


def _most_shared(devices: Iterable[Device], found: Sequence[Conditions]) -> Device | None:
    """Return the device with the most other processes, if there are several devices."""
    counts = [(c.foreign_procs or 0, device) for device, c in zip(devices, found, strict=True)]
    most, device = max(counts, key=lambda count: count[0], default=(0, (0, "")))
    return device if most and len(counts) > 1 else None


_OF_THE_HOST = ("foreign_cpu", "cpu_util", "cpu_wait", "cpu_throttled", "cpu_stolen", "foreign_demand")


def _known(rows: Sequence[Sample], column: str) -> list[float]:
    return [value for r in rows if (value := getattr(r, column)) is not None]


def _of_device(rows: Sequence[Sample]) -> Conditions:
    counts = [r.foreign_procs for r in rows if r.foreign_procs is not None]
    clocks = [r.sm_clock_mhz for r in rows if r.sm_clock_mhz is not None]
    reasons = [reasons_in(r.throttle) for r in rows if r.throttle is not None]
    seen = Counter(name for names in reasons for name in names)
    return Conditions(
        foreign_procs=max(counts, default=None),
        foreign_share=sum(1 for n in counts if n) / len(counts) if counts else None,
        sm_clock_mhz=_mean(clocks),
        throttle={name: seen[name] / len(reasons) for name in sorted(seen)} if reasons else None,
    )


def _worst(values: Sequence[_Number | None], nodes: bool) -> _Number | None:
    """The largest; None if one of them is not known, unless another one of several `nodes` is above 0."""
    known = [v for v in values if v is not None]
    most = max(known, default=None)
    return most if len(known) == len(values) or (nodes and most) else None


def _worst_shares(found: Sequence[dict[str, float]]) -> dict[str, float] | None:
    if not found:
        return None
    names = sorted({name for shares in found for name in shares})
    return {name: max(shares.get(name, 0.0) for shares in found) for name in names}


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), 3) if values else None


def _cores(used: Sequence[float]) -> float | None:
    """Of percentages of one core."""
    mean = _mean(used)
    return None if mean is None else round(mean / 100, 3)


def lost_share(stolen: float | None, used: float | None) -> float | None:
    """Return what of the CPU time that a run wanted others kept from it, 0 to 1; None if unknown.

    `stolen` is percent of one core, `used` cores. What others use of cores that it does not want costs it
    nothing.
    """
    if stolen is None or used is None or stolen + used <= 0:
        return None
    return stolen / (stolen + 100 * used)


def usable(quota: float | None, affinity: object) -> float | None:
    """Return how many cores a run may use: those that its process says, and the control group's `quota` where
    that is less. None if neither is known."""
    counted = isinstance(affinity, int) and not isinstance(affinity, bool) and affinity > 0
    known = [value for value in (quota, affinity if counted else None) if isinstance(value, (int, float))]
    return min(map(float, known), default=None)


# Mean clocks further apart than this make other step times; shares of throttled readings likewise.
CLOCK_APART = assumed("clock_apart")
THROTTLED_APART = 0.25
# An idle device and one at its power limit run slower of themselves: what the change did, not the machine.
OF_ITSELF = ("gpu_idle", "sw_power_cap")
OF_ITSELF_SHARE = 0.05


def apart(
    before: Sequence[Conditions], after: Sequence[Conditions], *, devices: bool = True
) -> tuple[str, ...]:
    """Return what of clocks, throttling and quota differs between two sides of runs; what is not known does
    not differ. Without `devices` the quota alone."""
    of_devices = [_clocks(before, after), *(_throttling(name, before, after) for name in SLOWING)]
    found = [*(of_devices if devices else ()), _quota(before, after)]
    return tuple(text for text in found if text)


def _clocks(before: Sequence[Conditions], after: Sequence[Conditions]) -> str | None:
    sides = [[c.sm_clock_mhz for c in side if c.sm_clock_mhz is not None] for side in (before, after)]
    if not all(sides):
        return None
    old, new = (math.fsum(side) / len(side) for side in sides)
    slower = before if old < new else after
    of_itself = sum(_share(name, slower) or 0.0 for name in OF_ITSELF)
    if abs(old - new) <= CLOCK_APART * max(old, new) or of_itself >= OF_ITSELF_SHARE:
        return None
    return f"clocks of {old:.0f} and {new:.0f} MHz"


def _throttling(name: str, before: Sequence[Conditions], after: Sequence[Conditions]) -> str | None:
    old, new = _share(name, before), _share(name, after)
    if old is None or new is None or abs(old - new) <= THROTTLED_APART:
        return None
    return f"throttled by {name} {old:.0%} and {new:.0%} of the time"


# Percent of one core's time that a quota held a side back more than the other.
HELD_APART = 25.0
_MORE_WORK = 1.1


def _quota(before: Sequence[Conditions], after: Sequence[Conditions]) -> str | None:
    """That a control group's quota held one side back more; a side that used more cores did that itself."""
    held = [[c.cpu_throttled for c in side if c.cpu_throttled is not None] for side in (before, after)]
    used = [[c.cpu_cores for c in side if c.cpu_cores is not None] for side in (before, after)]
    if not all(held) or not all(used):
        return None
    old, new = (math.fsum(side) / len(side) for side in held)
    mine, others = (math.fsum(side) / len(side) for side in (used if old > new else used[::-1]))
    if abs(old - new) <= HELD_APART or mine > _MORE_WORK * others:
        return None
    return f"held back by a CPU quota for {old:.0f}% and {new:.0f}% of a core's time"


def _share(name: str, runs: Sequence[Conditions]) -> float | None:
    """Return the mean share of readings with this reason, over the runs that tell."""
    known = [c.throttle for c in runs if c.throttle is not None]
    return math.fsum(shares.get(name, 0.0) for shares in known) / len(known) if known else None


# A sampler writes its last row when the job has ended; what lies further apart was lost.
LATEST_ROW_S = 5.0
LATEST_ROW_SHARE = 0.02
# The last row of a file may be torn.
UNREADABLE_SHARE = 0.01


def doubt(samples: SampleTable, duration: float | None, log_bytes: int | None) -> str | None:
    """Return why nothing can be read from these samples; None if nothing speaks against them.

    `duration` is how long a run lasted that ended by itself, in seconds, `log_bytes` the size of its log now.
    """
    return (
        samples.refused
        or _broken_clock(samples.rows)
        or _cut_samples(samples, duration)
        or _cut_log(max((r.log_bytes or 0 for r in samples.rows), default=0), log_bytes)
    )


def _broken_clock(rows: Sequence[Sample]) -> str | None:
    """Return where `elapsed` goes back. Equal times are one moment."""
    last: dict[Device, float] = {}
    for row in rows:
        device = (row.gpu_index, row.gpu_uuid)
        before = last.get(device, row.elapsed)
        if row.elapsed < before:
            back = f"{before - row.elapsed:.1f} s"
            return f"the clock of samples.csv went back by {back} at {before:.1f} s"
        last[device] = row.elapsed
    return None


def _cut_samples(samples: SampleTable, duration: float | None) -> str | None:
    count = len(samples.rows) + samples.unreadable
    if samples.unreadable > max(1.0, UNREADABLE_SHARE * count):
        return f"{samples.unreadable} of {count} rows of samples.csv cannot be read"
    end = max((r.elapsed for r in samples.rows), default=None)
    if end is None or duration is None or duration - end <= LATEST_ROW_S + LATEST_ROW_SHARE * duration:
        return None
    return f"samples.csv is cut short: it ends at {end:.1f} s of {duration:.1f} s"


def _cut_log(seen: int, size: int | None) -> str | None:
    if size is None or size >= seen:
        return None
    return f"train.log is cut short: {size} bytes are left of {seen}"
