"""What all rows of a recording show: their period, gaps, what is missing, and the mean of each figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from math import fsum
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING

from gpudebug.core.answers.analyze import RecordedDevice, RecordedGap, WholeRecording
from gpudebug.core.recordings.names import SHARES
from gpudebug.core.recordings.sources import delay_of

if TYPE_CHECKING:
    from gpudebug.core.recordings.collect import MonitorRows, Row
    from gpudebug.core.samples.row import DeviceReading

# Without a row for longer than so many usual periods something is missing.
GAP_PERIODS = 3.0
_MOST_GAPS = 20
# A counter of a GPU at work varies: so many equal readings over so long are not its work.
_STUCK_ROWS = 20
_STUCK_S = 600.0
_STUCK_UTIL = 50.0
# So many rows of a GPU have one time: its clock is coarser than they are.
_COARSE = 3
_FEW = 10
"""Fewer readings are called so."""
_ALWAYS = ("gpu_util", "mem_used_mb", "power_w")
"""Figures whose absence is named."""


def summed_up(
    rows: Sequence[Row], found: MonitorRows, numbers: Mapping[str | None, int], *, timed: bool
) -> WholeRecording:
    """Return what rows show as a whole; `numbers` are those of the GPUs, `timed` whether times are known."""
    by_key: dict[str | None, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    times = sorted(row.time for row in rows)
    step = usual_period(rows) if timed else None
    gaps = list(_gaps(times, step)) if timed else []
    period = _finer(by_key.values(), step)
    devices = tuple(_device(by_key[key], number) for key, number in numbers.items() if key in by_key)
    start = _date(times[0]) if found.dated and timed else None
    known = {name for name in _ALWAYS if next(_values(rows, name), None) is not None}
    return WholeRecording(
        source=found.source,
        version=found.version,
        rows=len(rows),
        devices=devices,
        gpu_util=_mean(_values(rows, "gpu_util")),
        start=start,
        span_s=round(times[-1] - times[0], 3) if timed else None,
        period_s=period,
        period_assumed=any(part.timed == "assumed" for part in found.parts)
        and delay_of(found.source) == period,
        gaps=tuple(gaps[:_MOST_GAPS]),
        gap_count=len(gaps),
        missing=tuple(name for name in _ALWAYS if name not in known),
        remarks=tuple(_remarks(by_key, numbers)),
    )


def _date(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return None


def usual_period(rows: Iterable[Row]) -> float | None:
    """Return the usual time between two rows of one GPU; None if no GPU has two."""
    last: dict[str | None, float] = {}
    gaps = []
    for row in rows:
        if row.key in last and row.key is not None and row.time != last[row.key]:
            gaps.append(abs(row.time - last[row.key]))
        last[row.key] = row.time
    return round(median(gaps), 6) if gaps else None


def _finer(devices: Iterable[Sequence[Row]], step: float | None) -> float | None:
    """Return the period of rows whose times are coarser than they are: whole minutes, say, as a spreadsheet
    writes them."""
    most = max(devices, key=len)
    times = {row.time for row in most}
    if step is None or len(most) < _COARSE * len(times) or len(times) < _FEW / _COARSE:
        return step
    return round((max(times) - min(times)) / (len(most) - 1), 6)


def _gaps(times: Sequence[float], period: float | None) -> Iterable[RecordedGap]:
    if period is None:
        return
    for before, after in pairwise(times):
        if after - before > GAP_PERIODS * period:
            yield RecordedGap(after_s=round(before - times[0], 3), seconds=round(after - before, 3))


def _values(rows: Iterable[Row], name: str) -> Iterator[float]:
    """Yield a figure of each row that has it."""
    found = (row.shares.get(name) for row in rows) if name in SHARES else _read(rows, attrgetter(name))
    return (value for value in found if value is not None)


def _read(rows: Iterable[Row], get: Callable[[DeviceReading], float | None]) -> Iterator[float | None]:
    return (get(row.reading) for row in rows)


def _mean(found: Iterable[float]) -> float | None:
    values = list(found)
    return fsum(values) / len(values) if values else None


def _share(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a share, 0 to 1; what exceeds 1 was written in percent."""
    values = list(_values(rows, name))
    mean = _mean(values)
    return mean / 100 if mean is not None and max(values) > 1 else mean


def _device(rows: Sequence[Row], number: int) -> RecordedDevice:
    label = next((row.reading.gpu_uuid for row in rows if row.reading.gpu_uuid), None)
    used = list(_values(rows, "mem_used_mb"))
    return RecordedDevice(
        index=number,
        name=label or (rows[0].key or None),
        readings=len(rows),
        gpu_util=_mean(_values(rows, "gpu_util")),
        **{name: _share(rows, name) for name in SHARES},
        mem_util=_mean(_values(rows, "mem_util")),
        mem_used_mb=_mean(used),
        mem_peak_mb=max(used, default=None),
        mem_total_mb=max(_values(rows, "mem_total_mb"), default=None),
        power_w=_mean(_values(rows, "power_w")),
        temperature_c=_mean(_values(rows, "temperature_c")),
    )


def _remarks(by_key: Mapping[str | None, Sequence[Row]], numbers: Mapping[str | None, int]) -> Iterable[str]:
    most = max((len(by_key.get(key, ())) for key in numbers), default=0)
    if 0 < most < _FEW:
        yield "one reading of each GPU: a moment" if most == 1 else f"short: {most} readings of each GPU"
    for key, number in numbers.items():
        rows = by_key.get(key, ())
        if not rows:
            continue
        if len(rows) < most and len(numbers) > 1:
            yield f"GPU {number} has {len(rows)} of {most} readings"
        busy = sum(1 for _ in _values(rows, "gpu_util"))
        if 0 < busy < len(rows):
            yield f"GPU {number} has a utilisation in {busy} of {len(rows)} readings: the mean is of these"
        yield from _stuck(rows, number)


def _stuck(rows: Sequence[Row], number: int) -> Iterable[str]:
    """Remark a utilisation that no work explains: equal in all rows, or without a look at memory."""
    util, memory = list(_values(rows, "gpu_util")), list(_values(rows, "mem_util"))
    if len(util) < _STUCK_ROWS or min(util) < _STUCK_UTIL:
        return
    same, idle = min(util) == max(util), len(memory) == len(util) and not any(memory)
    long = util[0] < 100 and rows[-1].time - rows[0].time >= _STUCK_S
    if same and (idle or long):
        beside = " while its memory was never read or written" if idle else ""
        yield (
            f"GPU {number} reads {util[0]:g} % in all {len(util)} rows{beside}: the counter may be stuck, "
            "this is no measure of its work"
        )
