"""What each device of a run did in the window, and what several show beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from pydantic import ValidationError

from gpudebug.core.records import AwaitedDevice, DeviceEvidence, DeviceInfo, Spread, Window
from gpudebug.core.samples.awaited import awaited
from gpudebug.core.samples.conditions import SLOWING, reasons_in
from gpudebug.core.samples.table import Sample
from gpudebug.core.samples.window import LONGEST_READING_PERIODS, LONGEST_READING_S, Device, Stretch
from gpudebug.core.samples.working import WorkingShare, working
from gpudebug.core.statistics import across, intervals, numbers
from gpudebug.core.words import is_stand_in

# A device that answered for less of the window than this has no figure.
MIN_COVERAGE = 0.9
# A counter that is slow to read is read once a second, and the least window is 5 s long.
MIN_COUNTED = 0.75
# Fewer readings than this have no spread.
MIN_READINGS = 4
_TOO_EARLY = "the window is too short: the run ended before the device gave a reading"
_SPREADS = ("mem_util", "power_w", "sm_clock_mhz", "mem_clock_mhz", "temperature_c")


def device_evidence(
    device: Device,
    info: DeviceInfo | None,
    rows: Sequence[Sample],
    readings: Sequence[Stretch],
    window: Window | None,
    window_reason: str | None,
    missing: Mapping[str, str],
) -> DeviceEvidence:
    """Summarise one device by its own `rows`; `readings` are those of its utilisation.

    What was not read, or for too little of the window, is None.
    """
    own = [r for r in rows if r.mem_used_mb is not None]
    inside_it = [r for r in own if window and window.start_s <= r.elapsed <= window.end_s]
    used, steady = ([r.mem_used_mb or 0.0 for r in some] for some in (own, inside_it or own))
    total = max((r.mem_total_mb for r in rows if r.mem_total_mb is not None), default=None)
    known = DeviceEvidence(
        index=device[0],
        uuid=device[1],
        name=info.name if info else "",
        mem_used_mb=max(used, default=None),
        mem_mean_mb=math.fsum(steady) / len(steady) if steady else None,
        mem_total_mb=total if total is not None or info is None else info.memory_total_mb,
        power_limit_w=info.power_limit_w if info else None,
        link=info.links if info else None,
        node=info.node if info else None,
    )
    if window is not None:
        known = known.model_copy(update=_in_window(rows, window))
    if not readings:
        return known.model_copy(update={"reason": missing.get("gpu_util", _TOO_EARLY)})
    if window is None:
        return known.model_copy(update={"reason": window_reason})
    inside = [(s.value, width) for s in readings if (width := s.overlap(window))]
    values, widths = [v for v, _ in inside], [w for _, w in inside]
    covered = math.fsum(widths) / window.duration_s
    if covered < MIN_COVERAGE:
        return known.model_copy(update={"reason": f"readings cover only {100 * covered:.0f}% of the window"})
    if len(values) < MIN_READINGS:
        return known.model_copy(update={"reason": f"only {len(values)} readings in the window"})
    return known.model_copy(
        update={
            "gpu_util": intervals.spread(values, widths),
            "standard_error": intervals.standard_error(values),
        }
    )


def joules_per_step(
    devices: Sequence[DeviceEvidence], window: Window | None, steps_per_s: float | None
) -> float | None:
    """The energy of all devices over the steps of the window; None if a device's or the steps are unknown."""
    used = [d.energy_j for d in devices if d.energy_j is not None]
    if window is None or not steps_per_s or not used or len(used) < len(devices):
        return None
    return math.fsum(used) / (steps_per_s * window.duration_s)


def silent(
    devices: Sequence[DeviceInfo], seen: Sequence[Device], unsampled: Mapping[str, str] | None = None
) -> list[DeviceEvidence]:
    """Return the devices of the run that no row is of; `unsampled` says of a node why."""
    if len(seen) >= len(devices):
        return []
    why = unsampled or {}
    uuids = {uuid for _, uuid in seen}
    return [
        DeviceEvidence(
            index=d.index,
            uuid=d.uuid,
            name=d.name,
            reason=why.get(d.node or "", "no device reading"),
            node=d.node,
        )
        for d in devices
        if d.uuid not in uuids
    ]


def _in_window(rows: Sequence[Sample], window: Window) -> dict[str, object]:
    found: dict[str, Any] = {name: _spread(rows, name, window) for name in _SPREADS}
    if found["power_w"] is not None:
        found["power_error"] = intervals.standard_error(_inside(rows, "power_w", window)[0])
    found["throttle"], found["throttled"] = _throttle(rows, window)
    counted = _counted_energy(rows, window)
    power = found["power_w"]
    if counted is not None:
        found |= {"energy_j": counted, "energy_by": "counter"}
    elif power is not None:
        found |= {"energy_j": power.mean * window.duration_s, "energy_by": "power"}
    return found


def _inside(rows: Sequence[Sample], column: str, window: Window) -> tuple[list[Any], list[float]]:
    """Return the column's readings in the window, each with the seconds of it that it counts for: those since
    the reading before it, but for no longer than a reading of the utilisation may."""
    read = attrgetter(column)
    seen, previous = [], 0.0
    for row in rows:
        value = read(row)
        if value is not None and row.elapsed > previous:
            seen.append((row.elapsed, row.elapsed - previous, value))
            previous = row.elapsed
    if not seen:
        return [], []
    longest = max(LONGEST_READING_S, LONGEST_READING_PERIODS * median(gap for _, gap, _ in seen))
    values, widths = [], []
    for end, gap, value in seen:
        width = Stretch(end, min(gap, longest), 0.0).overlap(window)
        if width:
            values.append(value)
            widths.append(width)
    return values, widths


def _spread(rows: Sequence[Sample], column: str, window: Window) -> Spread | None:
    values, widths = _inside(rows, column, window)
    if len(values) < MIN_READINGS or math.fsum(widths) < MIN_COVERAGE * window.duration_s:
        return None
    return intervals.spread(values, widths)


def _throttle(rows: Sequence[Sample], window: Window) -> tuple[dict[str, float] | None, float | None]:
    """Shares of the window's time by reason, and of any reason that slows."""
    values, widths = _inside(rows, "throttle", window)
    total = math.fsum(widths)
    if total < MIN_COVERAGE * window.duration_s:
        return None, None
    seen = [(reasons_in(text), width) for text, width in zip(values, widths, strict=True)]
    names = sorted({name for reasons, _ in seen for name in reasons})
    shares = {name: math.fsum(w for reasons, w in seen if name in reasons) / total for name in names}
    slowed = math.fsum(w for reasons, w in seen if not reasons.isdisjoint(SLOWING)) / total
    return shares, slowed


def _counted_energy(rows: Sequence[Sample], window: Window) -> float | None:
    """Joules in the window by the device's counter; None if it lacks one, or counted backwards.

    Between two readings of the counter the power is taken for even; what of the window lies beyond the first
    or the last of them, at most a quarter, for as much as the rest.
    """
    counts = [(r.elapsed, r.energy_j) for r in rows if r.energy_j is not None]
    if len(counts) < 2 or any(b < a for (_, a), (_, b) in pairwise(counts)):
        return None
    start, end = max(window.start_s, counts[0][0]), min(window.end_s, counts[-1][0])
    if end - start < MIN_COUNTED * window.duration_s:
        return None
    used = _count_at(counts, end) - _count_at(counts, start)
    return used * window.duration_s / (end - start)


def _count_at(counts: Sequence[tuple[float, float]], time: float) -> float:
    before = max((c for c in counts if c[0] <= time), key=lambda c: c[0])
    after = min((c for c in counts if c[0] >= time), key=lambda c: c[0])
    if after[0] <= before[0]:
        return after[1]
    return before[1] + (after[1] - before[1]) * (time - before[0]) / (after[0] - before[0])


MISLEADS = 0.1
"""A device is busy for so much more of the time than it works, as far as power shows."""
_STAND_IN = "the CPU stand-in reports no power"


class DevicesTogether(NamedTuple):
    """The devices with their working shares, the mean share of all, and the awaited device.

    `working_reason` and `awaited_reason` say why one is unknown.
    """

    devices: tuple[DeviceEvidence, ...]
    working: float | None = None
    working_reason: str | None = None
    awaited: AwaitedDevice | None = None
    awaited_reason: str | None = None


def together(
    devices: Sequence[DeviceEvidence],
    rows: Mapping[Device, Sequence[Sample]],
    window: Window | None,
    infos: Mapping[str, DeviceInfo],
    missing: Mapping[str, str],
) -> DevicesTogether:
    """Add what power shows of them. Without a window nothing is known, which `window_reason` explains."""
    if window is None or not rows:
        return DevicesTogether(tuple(devices))
    limits = {d: infos[d[1]].power_limit_w if d[1] in infos else None for d in rows}
    names = {d: infos[d[1]].name if d[1] in infos else "" for d in rows}
    shares = working(rows, window, limits, names)
    found = tuple(_with_share(d, shares.get((d.index, d.uuid)), missing) for d in devices)
    waited, reason = awaited(rows, window, shares)
    if waited is not None and waited.uuid in infos:
        waited = waited.model_copy(update={"node": infos[waited.uuid].node})
    known = [d.working for d in found if d.working is not None]
    complete = len(known) == len(found)
    return DevicesTogether(
        found,
        math.fsum(known) / len(known) if complete else None,
        None if complete else next(d.working_reason for d in found if d.working is None),
        waited,
        reason,
    )


def _with_share(
    device: DeviceEvidence, share: WorkingShare | None, missing: Mapping[str, str]
) -> DeviceEvidence:
    if share is None:
        return device.model_copy(update={"working_reason": "no device reading"})
    if share.scale is None or share.share is None:
        reason = _STAND_IN if is_stand_in(device.uuid) else share.reason
        if device.power_w is None:
            reason = missing.get("power_w", reason)
        return device.model_copy(update={"working_reason": reason})
    figures = {
        "working": round(share.share, 4),
        "waiting_w": round(share.scale.waiting_w, 1),
        "working_w": round(share.scale.working_w, 1),
    }
    return device.model_copy(update=figures)


def awaited_text(found: AwaitedDevice) -> str:
    """`GPU 0 is idle every 3.5 s for 1 s while the others are busy at waiting power: periodic work on …`."""
    does = "is idle" if found.state == "idle" else "works alone"
    length = numbers.seconds(found.length_s)
    if found.every_s is not None:
        when = f"every {numbers.seconds(found.every_s)} for {length}"
    elif found.times > 1:
        when = f"{found.times} times for {length} on average"
    else:
        when = f"for {length}"
    what = "periodic work on one device" if found.every_s is not None else "they wait for it"
    return f"{across.name(found)} {does} {when} while the others are busy at waiting power: {what}"


def notes(evidence: Any) -> tuple[str, ...]:
    """Return what a reader of the mean utilisation of a run, a record or its JSON, has to know: the awaited
    device, and busy waiting.

    Without power what the mean hides is told by the utilisation of each device alone.
    """
    misleads = _by_power([evidence]) or _by_devices([evidence])
    return tuple(note for note in (waited_for([evidence]), misleads) if note)


def waited_for(runs: Sequence[Any]) -> str | None:
    """Return the device that the others wait for and for how much of the window, if it is the same in every
    run that shows one. Runs are evidence, records or their JSON."""
    found = awaited_in(runs)
    if found is None:
        return None
    return f"{awaited_text(found)} ({_shared(runs, found):.0%} of the window)"


def awaited_in(runs: Sequence[Any]) -> AwaitedDevice | None:
    """The awaited device as the last run shows it; None if none does, or if it is not the same in all."""
    found = [one for e in runs if (one := awaited_of(e)) is not None]
    return found[-1] if len({one.uuid or one.index for one in found}) == 1 else None


def awaited_of(run: Any) -> AwaitedDevice | None:
    """None also of a record that another hand wrote, and that is none."""
    with suppress(ValidationError):
        return AwaitedDevice.model_validate(across.reader(run)("awaited"))
    return None


def _shared(runs: Sequence[Any], otherwise: AwaitedDevice) -> float:
    """Return the mean share of the runs of which power tells; of one that shows no awaited device it is 0."""
    told = [e for e in runs if across.reader(e)("working") is not None]
    shares = [one.share if (one := awaited_of(e)) is not None else 0.0 for e in told]
    return math.fsum(shares) / len(shares) if shares else otherwise.share


def telling(runs: Sequence[Any]) -> str | None:
    """Return which of several devices tell how busy these runs are, their work or the least busy one; None if
    their mean does."""
    if any(_by_power([e]) for e in runs):
        return across.WORKING
    return across.LEAST if _by_devices(runs) else None


def mean_hides(runs: Sequence[Any], judged_by: str | None = None) -> str | None:
    """Return why the mean utilisation of these runs misleads and what to judge by, by the utilisation of each
    device, else by power; None if it does not, or if `judged_by`, criteria.devices, says so already.

    Runs are evidence, records or their JSON. The least busy device shows an awaited one as well.
    """
    if judged_by == across.WORKING:
        return None
    if judged_by != across.LEAST:
        return _by_devices(runs) or _by_power(runs)
    return None if _awaited(runs) else _by_power(runs)


def _by_power(runs: Sequence[Any]) -> str | None:
    busy, share = (_mean([across.reader(e)(figure) for e in runs]) for figure in ("utilisation", "working"))
    return mean_misleads(busy, share, awaited=_awaited(runs))


def _by_devices(runs: Sequence[Any]) -> str | None:
    return across.misleading(across.across(*(across.reader(e)("devices") or () for e in runs)))


def _awaited(runs: Sequence[Any]) -> bool:
    return any(across.reader(e)("awaited") for e in runs)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def mean_misleads(utilisation: float | None, share: float | None, *, awaited: bool) -> str | None:
    """Return why utilisation misleads, as far as power shows; None if it does not, or if that is not known.

    Beside a device that the others wait for, their mean counts the waiting as work and hides the idling.
    """
    if utilisation is None or share is None or not (awaited or utilisation / 100 - share > MISLEADS):
        return None
    works = f"the power of work is drawn {numbers.percent(100 * share)} of the time"
    instead = f"judge by `criteria: {{devices: {across.WORKING}}}` or by steps_per_s"
    mean = f"the mean gpu_util of {numbers.percent(utilisation)}"
    return f"{mean} misleads: waiting counts as busy in it, and {works}; {instead}"
