"""The history and system metrics of a Weights & Biases run as its folder holds them: `run-ID.wandb`.

LevelDB's log frames (blocks of 32 KiB, each part with a CRC-32) around protobuf records.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite

from gpudebug.core.trainlog.event_files import WrittenScalars, fields
from gpudebug.core.trainlog.written_tables import as_number

BLOCK = 32768
MAGIC = b":W&B"
_HEAD = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
# Fields of `Record` in wandb_internal.proto.
_HISTORY, _STATS = 2, 7


@dataclass(frozen=True, slots=True)
class SystemReading:
    """System metrics at one moment, in seconds since 1970, by key: `gpu.0.gpu`, `gpu.0.powerWatts`."""

    time: float
    values: dict[str, float]


@dataclass(slots=True)
class SystemReadings:
    """Those of a file in its order; `note` says where it could not be read on."""

    readings: list[SystemReading] = field(default_factory=list)
    note: str | None = None


def read_wandb(data: bytes) -> WrittenScalars:
    """Return the numbers of the history, by key; nested ones as `a.b`."""
    found = WrittenScalars()
    found.note = _take_records(data, _HISTORY, lambda message: _take_history(message, found))
    return found


def read_wandb_system(data: bytes) -> SystemReadings:
    """Return the system metrics that were recorded beside the history."""
    found = SystemReadings()

    def take(message: bytes) -> None:
        reading = _system_reading(message)
        if reading is not None:
            found.readings.append(reading)

    found.note = _take_records(data, _STATS, take)
    return found


def _take_records(data: bytes, wanted: int, take: Callable[[bytes], None]) -> str | None:
    """Take each record of a kind; where the file could not be read on, None if it could to its end."""
    if data[: len(MAGIC)] != MAGIC:
        return "is no file of a W&B run"
    try:
        for record in _records(data):
            for number, value in fields(record):
                if number == wanted and isinstance(value, bytes):
                    take(value)
    except ValueError as e:
        return str(e)
    return None


def _system_reading(message: bytes) -> SystemReading | None:
    """Return a `StatsRecord`; None if it has no time."""
    time, values = None, dict[str, float]()
    for number, value in fields(message):
        if number == 2 and isinstance(value, bytes):
            parts = {n: v for n, v in fields(value) if isinstance(v, int)}
            time = parts.get(1, 0) + parts.get(2, 0) / 1e9
        elif number == 3 and isinstance(value, bytes):
            _take_item(value, values)
    return SystemReading(time, values) if time else None


def _records(data: bytes) -> Iterator[bytes]:
    at, parts = _HEAD, list[bytes]()
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < _HEAD:
            at += left
            continue
        if at + _HEAD > len(data):
            raise ValueError(f"is cut short at byte {at}")
        check, size, kind = struct.unpack_from("<IHB", data, at)
        if not check and not size and not kind:
            at += left
            continue
        part = data[at + _HEAD : at + _HEAD + size]
        if len(part) < size:
            raise ValueError(f"is cut short at byte {at}")
        if zlib.crc32(part, zlib.crc32(bytes([kind]))) != check or kind not in (
            _FULL,
            _FIRST,
            _MIDDLE,
            _LAST,
        ):
            raise ValueError(f"is damaged at byte {at}")
        if kind in (_FULL, _FIRST):
            parts = []
        parts.append(part)
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
        at += _HEAD + size


def _take_history(message: bytes, found: WrittenScalars) -> None:
    row: dict[str, float] = {}
    step = 0
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            _take_item(value, row)
        elif number == 2 and isinstance(value, bytes):
            step = next((v for n, v in fields(value) if n == 1 and isinstance(v, int)), 0)
    named = row.get("_step", float(step))
    at = int(named) if isfinite(named) else step
    for name, figure in row.items():
        if not name.startswith("_"):
            found.add(name, at, figure)


def _take_item(message: bytes, row: dict[str, float]) -> None:
    names, text = [], ""
    for number, value in fields(message):
        if not isinstance(value, bytes):
            continue
        if number in (1, 2):
            names.append(value.decode("utf-8", "replace"))
        elif number == 16:
            text = value.decode("utf-8", "replace")
    try:
        figure = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(figure, str) or figure in ("NaN", "Infinity", "-Infinity"):
        read = as_number(figure)
        if read is not None:
            row[".".join(names)] = read
