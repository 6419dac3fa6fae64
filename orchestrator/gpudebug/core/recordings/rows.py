"""Cells of named columns -> readings: each device of a row with its figures, and the row's time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.cells import (
    DAY,
    EPOCH_UNITS,
    HOUR,
    lacks,
    moment,
    number,
    pair,
    plain,
    throttle,
)
from gpudebug.core.recordings.names import GRACT, SHARES, NamedFigure

_INDEX = regex(
    r"(?:\S{1,100}/)?(?:gpu|card|npu|device|cuda|nvidia|gcd)?[ _:\[]{0,2}(\d{1,3})\]?", re.IGNORECASE
)
_DEVICE_KEYS = (of.UUID, of.BUS, of.SERIAL, of.INDEX)


@dataclass(slots=True)
class Reading:
    """What one device shows: `key` tells it from others, empty if nothing does."""

    key: str
    index: int | None
    label: str
    values: dict[str, Any]


def readings(figures: Sequence[tuple[int, NamedFigure]], cells: Sequence[str]) -> list[Reading]:
    """Return one reading a device of a row. Raises ValueError if a cell is no figure of its column."""
    identity: dict[str, str] = {}
    by_device: dict[str | None, dict[str, Any]] = {}
    for at, one in figures:
        cell = cells[at]
        if one.quantity in (of.TIME, of.DATE, of.NAME, of.COUNT):
            continue
        if one.quantity in (*of.IDENTITIES, of.HOST):
            identity.setdefault(one.quantity, "" if lacks(cell) and one.quantity != of.INDEX else plain(cell))
            continue
        values = by_device.setdefault(one.device, {})
        for quantity, value in _values(one, cell):
            if values.get(quantity) is None:
                values[quantity] = value
    if not by_device:
        by_device[None] = {}
    return [_reading(identity, device, values) for device, values in by_device.items()]


# Most cells of a recording were read before: a percentage, an amount of memory.
@lru_cache(maxsize=1 << 14)
def _values(one: NamedFigure, cell: str) -> list[tuple[str, Any]]:
    if one.quantity == "throttle":
        return [("throttle", throttle(cell))]
    both = pair(cell)
    if both is None:
        if one.vague and not re.search(r"[A-Za-z]", cell):
            return []
        return [(one.quantity, _checked(one.quantity, number(cell, one.quantity, one.unit)))]
    value = number(both[0], one.quantity, one.unit)
    if one.quantity != "mem_used_mb":
        return [(one.quantity, _checked(one.quantity, value))]
    total = number(both[1], one.quantity, one.unit)
    return [("mem_used_mb", value), ("mem_total_mb", total)] if total else []


_MOST_W = 3000.0
"""No GPU draws more: such a figure is in another unit than its name says, as a Jetson's milliwatts."""


def _checked(quantity: str, value: float | None) -> float | None:
    if value is None:
        return None
    if quantity in ("gpu_util", "mem_util") and not 0 <= value <= 100:
        raise ValueError(value)
    if quantity in (*SHARES, GRACT) and not 0 <= value <= 100:
        raise ValueError(value)
    return None if quantity == "power_w" and value > _MOST_W else value


def _reading(identity: Mapping[str, str], device: str | None, values: dict[str, Any]) -> Reading:
    entity = identity.get(of.ENTITY, "").rpartition(":")[2]
    text = device or entity or identity.get(of.INDEX, "")
    index = _index(text) if text else None
    key = next((identity[k] for k in _DEVICE_KEYS if identity.get(k)), "") or entity
    label = next((identity[k] for k in (of.UUID, of.BUS, of.SERIAL) if identity.get(k)), "")
    if device is not None:
        key = f"{key}.{device}" if key else device
    host = identity.get(of.HOST)
    key = f"{host}/{key}" if host and key else key
    return Reading(key, index, label.replace(",", " "), values)


def _index(text: str) -> int | None:
    """Return the number of a device; None if it has a name. Raises ValueError if it is a figure."""
    found = _INDEX.fullmatch(text)
    if found:
        return int(found.group(1))
    if re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?\s?%?", text, re.IGNORECASE) or len(text) > 100:
        raise ValueError(text)
    return None


class RecordedClock:
    """Turns the cells of time of one recording into seconds; the first one says of what kind they are."""

    def __init__(self) -> None:
        self.dated = False
        self.day_first = False
        self._kind: str | None = None
        self._unit = 1.0
        self._day = 0.0
        self._last: float | None = None

    def seconds(self, cell: str, date: str | None = None, unit: str | None = None) -> float:
        """Return seconds, since 1970 if a date is known, of a time of day on over midnight. Raises ValueError
        if it is no time, or one of another kind than those before."""
        text = f"{_dashed(date)} {plain(cell)}" if date and not lacks(date) else plain(cell)
        found = moment(text, day_first=self.day_first)
        if found is None:
            value = number(text)
            if value is None:
                raise ValueError(cell)
            kind = "since 1970" if value >= EPOCH_UNITS[-1][0] else "elapsed"
            self._take(kind, cell)
            if self._last is None and kind == "since 1970":
                self._unit = next(unit for least, unit in EPOCH_UNITS if value >= least)
            if kind == "elapsed" and unit == "ms":
                value /= 1000
            self._last = value * self._unit
            return self._last
        time, dated = found
        self._take("dated" if dated else "of day", cell)
        if not dated:
            turn = DAY if text.count(":") > 1 else HOUR
            if self._last is not None and time + self._day < self._last - turn / 2:
                self._day += turn
            time += self._day
        self._last = time
        return time

    def _take(self, kind: str, cell: str) -> None:
        if self._kind not in (None, kind):
            raise ValueError(cell)
        self._kind = kind
        self.dated = kind in ("dated", "since 1970")

    @property
    def counts_from_launch(self) -> bool:
        """Whether times are seconds since a launch, and not of a clock."""
        return self._kind == "elapsed"


def _dashed(date: str) -> str:
    return re.sub(r"^(\d{4})/?(\d\d)/?(\d\d)$", r"\1-\2-\3", plain(date))
