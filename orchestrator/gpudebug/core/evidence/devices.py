"""One device's rows -> what it did in the window: utilisation, power, clocks, memory, throttling, energy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Any

from gpudebug.core.records import DeviceEvidence, DeviceInfo, Spread, Window
from gpudebug.core.samples.conditions import SLOWING, reasons_in
from gpudebug.core.samples.table import Sample
from gpudebug.core.samples.window import (
    LONGEST_READING_PERIODS,
    LONGEST_READING_S,
    Device,
    Stretch,
)
from gpudebug.core.statistics import intervals

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


def _in_window(rows: Sequence[Sample], window: Window) -> dict[str, Any]:
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
