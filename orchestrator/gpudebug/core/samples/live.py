"""What the devices of a run do now, and did in its last minutes: from rows of samples.csv as they come."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.samples.row import DeviceReading, parse_row
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.statistics.numbers import thin

GAP_S = 2.0
_PERIODS = 3.0

Moment = tuple[float, float | None, float | None]
"""Seconds since launch, utilisation in percent, MB of device memory used; None is not known."""


def timelines(samples: SampleTable, most: int, interval: float | None = None) -> list[dict[str, Any]]:
    """`index`, `uuid` and `points` of each device: at most `most` `Moment`s that keep its peaks.

    A tick at which the driver had nothing new is no reading; none for longer than two seconds, or three
    times the `interval` of the samples, is a gap.
    """
    gap = max(GAP_S, _PERIODS * (interval or 0.0))
    return [
        {"index": index, "uuid": uuid, "points": thin(list(_moments(own, gap)), most, (1, 2))}
        for (index, uuid), own in samples.by_device.items()
    ]


def _moments(rows: Sequence[Sample], gap: float) -> Iterator[Moment]:
    reading = seen = 0.0
    for row in rows:
        now = row.elapsed
        if now - seen > gap:
            yield (seen + now) / 2, None, None
        seen = now
        if row.new_samples != 0 or now - reading > gap:
            value = row.gpu_util if row.new_samples != 0 else None
            reading = reading if value is None else now
            yield now, value, row.mem_used_mb


TRACE_S = 300
"""The trace goes so many seconds back."""
NOW_S = 2.0
"""Utilisation now is the mean over so many seconds: one sample of a device that blinks says little."""
_LONGEST_ROW = 1 << 16
# What the driver says of clocks that nothing holds down.
_FREE = ("", "none", "gpu_idle")


@dataclass(frozen=True)
class DeviceNow:
    """One device's newest readings. Percent, `_mb` of 2**20 bytes, W, MHz, degrees Celsius; None is unknown.

    `throttle` names what holds its clocks down, joined by `+`; None also if nothing does. `trace` has the
    mean utilisation of each second up to the newest row's, at most `TRACE_S`. `node` is the one that it is
    on, of a run on several nodes.
    """

    index: int
    uuid: str
    gpu_util: float | None = None
    mem_used_mb: float | None = None
    mem_total_mb: float | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle: str | None = None
    foreign_procs: int | None = None
    trace: tuple[float | None, ...] = ()
    node: str | None = None


@dataclass(frozen=True)
class HostNow:
    """The run's processes: CPU in percent of one core, resident memory, what they read and write of disks."""

    cpu_util: float | None = None
    rss_mb: float | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None


class Latest:
    """Fed with what was appended to samples.csv. `elapsed` is the newest row's, in seconds since launch."""

    def __init__(self) -> None:
        self.elapsed: float | None = None
        self._host: dict[str, float] = {}
        self._devices: dict[str, _DeviceReadings] = {}
        self._rest = b""

    def feed(self, data: bytes, *, torn: bool = False) -> None:
        """`torn`: rows before `data` are left out, and its first one may not be whole."""
        if torn:
            data = data.partition(b"\n")[2]
        *lines, rest = ((b"" if torn else self._rest) + data).split(b"\n")
        self._rest = rest if len(rest) <= _LONGEST_ROW else b""
        for line in lines:
            reading = parse_row(line.decode("utf-8", "replace"))
            if reading is not None:
                self._take(reading)

    def _take(self, reading: DeviceReading) -> None:
        at = _finite(reading.elapsed)
        if at is None or at < 0:
            return
        self.elapsed = at if self.elapsed is None else max(at, self.elapsed)
        for name in HostNow.__dataclass_fields__:
            if (value := _finite(getattr(reading, name))) is not None:
                self._host[name] = value
        key = reading.gpu_uuid or str(reading.gpu_index)
        self._devices.setdefault(key, _DeviceReadings()).take(at, reading)

    @property
    def host(self) -> HostNow:
        return HostNow(**self._host)

    @property
    def devices(self) -> list[DeviceNow]:
        """In the order of their indices."""
        found = (device.newest(self.elapsed or 0.0) for device in self._devices.values())
        return sorted(found, key=lambda device: (device.index, device.uuid))


class _DeviceReadings:
    def __init__(self) -> None:
        self._last = DeviceReading()
        self._at = 0.0
        self._new: deque[tuple[float, float]] = deque()
        # The sum and the count of each second's utilisations.
        self._seconds: deque[tuple[int, float, int]] = deque(maxlen=TRACE_S)

    def take(self, at: float, reading: DeviceReading) -> None:
        if at < self._at:
            return
        self._last, self._at = reading, at
        value = _finite(reading.gpu_util)
        if value is None or reading.new_samples == 0:
            return
        self._new.append((at, value))
        while self._new[0][0] < at - NOW_S:
            self._new.popleft()
        second, total, count = self._seconds[-1] if self._seconds else (-1, 0.0, 0)
        if second == int(at):
            self._seconds[-1] = (second, total + value, count + 1)
        else:
            self._seconds.append((int(at), value, 1))

    def newest(self, until: float) -> DeviceNow:
        last = self._last
        return DeviceNow(
            index=last.gpu_index or 0,
            uuid=last.gpu_uuid or "",
            gpu_util=self._utilisation(until),
            mem_used_mb=_finite(last.mem_used_mb),
            mem_total_mb=_finite(last.mem_total_mb),
            power_w=_finite(last.power_w),
            sm_clock_mhz=_finite(last.sm_clock_mhz),
            mem_clock_mhz=_finite(last.mem_clock_mhz),
            temperature_c=_finite(last.temperature_c),
            throttle="+".join(name for name in (last.throttle or "").split("+") if name not in _FREE) or None,
            foreign_procs=last.foreign_procs,
            trace=self._trace(int(until)),
        )

    def _utilisation(self, until: float) -> float | None:
        """Of the last `NOW_S` seconds; else the driver's last value, which it repeats until the next."""
        values = [value for at, value in self._new if at >= until - NOW_S]
        return sum(values) / len(values) if values else _finite(self._last.gpu_util)

    def _trace(self, last: int) -> tuple[float | None, ...]:
        known = {second: total / count for second, total, count in self._seconds if second > last - TRACE_S}
        return tuple(known.get(second) for second in range(min(known), last + 1)) if known else ()


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
