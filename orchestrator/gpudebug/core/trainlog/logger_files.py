"""Figures in binary files of loggers: TensorBoard's event files, history and system metrics of a W&B run, and
the scalars of a SwanLab run.

TensorBoard's are TFRecord frames with their checksums around protobuf messages: read is what training loops
write, `simple_value` and tensors of one number. `run-ID.wandb` and `run-ID.swanlab` have LevelDB's log frames
(blocks of 32 KiB, each part with a CRC-32) around protobuf records. A file that is cut short or damaged gives
what comes before that, and the answer names it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import isfinite

from gpudebug.core.trainlog.names import classify
from gpudebug.core.trainlog.quantities import quantity
from gpudebug.core.trainlog.text import as_number, measured

LARGEST_SCALAR = 4096
"""Longer messages hold images, graphs and histograms; they are passed over."""
MAX_TAGS = 512
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_FLOAT, _DOUBLE = 1, 2


@dataclass(slots=True)
class WrittenScalars:
    """(step, value) by tag, in the order of the file, of a figure that is none of learning the last alone;
    `note` says where it could not be read on."""

    values: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    note: str | None = None

    def add(self, tag: str, step: int, value: float) -> None:
        learns = of_learning(tag)
        if tag not in self.values and len(self.values) >= (2 if learns else 1) * MAX_TAGS:
            return
        points = self.values.setdefault(tag, [])
        if points and not learns:
            points.clear()
        points.append((step, value))


@lru_cache(maxsize=4096)
def of_learning(tag: str) -> bool:
    """Tell whether a figure is a loss, a reward, or a count or rate of work."""
    zeroed = tag.translate(_ZEROED)
    return classify(zeroed).kind == "loss" or "loss" in zeroed or quantity(zeroed) is not None


_ZEROED = str.maketrans("123456789", "0" * 9)


def read_events(data: bytes) -> WrittenScalars:
    """Return the scalars of one event file."""
    found = WrittenScalars()
    try:
        for event in _frames(data):
            _take_event(event, found)
    except ValueError as e:
        found.note = str(e)
    return found


def _frames(data: bytes) -> Iterator[bytes]:
    """Yield the messages of scalars. ValueError where the frames end or break off."""
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            raise ValueError(f"is cut short at byte {at}")
        size, check = struct.unpack_from("<QI", data, at)
        if _masked(data[at : at + 8]) != check:
            raise ValueError(f"is damaged at byte {at}")
        end = at + 12 + size
        if end + 4 > len(data):
            raise ValueError(f"is cut short at byte {at}")
        message = data[at + 12 : end]
        if size <= LARGEST_SCALAR:
            if _masked(message) != struct.unpack_from("<I", data, end)[0]:
                raise ValueError(f"is damaged at byte {at}")
            yield message
        at = end + 4


def _take_event(message: bytes, found: WrittenScalars) -> None:
    step, summaries = 0, []
    for number, value in fields(message):
        if number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes):
                _take_value(value, step, found)


def _take_value(message: bytes, step: int, found: WrittenScalars) -> None:
    tag, scalar = "", None
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif number == 2 and isinstance(value, bytes) and len(value) == 4:
            scalar = struct.unpack("<f", value)[0]
        elif number == 8 and isinstance(value, bytes):
            scalar = _of_tensor(value)
    if tag and scalar is not None:
        found.add(tag, step, scalar)


def _of_tensor(message: bytes) -> float | None:
    """Return the number of a tensor that holds one; None of any other."""
    kind, content = 0, b""
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in (4, 5, 6) and isinstance(value, bytes):
            content = value
    if kind == _FLOAT and len(content) == 4:
        return float(struct.unpack("<f", content)[0])
    if kind == _DOUBLE and len(content) == 8:
        return measured(struct.unpack("<d", content)[0])
    return None


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field of a protobuf message. ValueError if it is none."""
    at = 0
    while at < len(message):
        # Nearly all keys and sizes are one byte, and a call for each takes as long as the rest.
        key, at = (message[at], at + 1) if message[at] < 0x80 else _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size = _SIZES.get(kind)
        if kind == _BYTES and at < len(message):
            size, at = (message[at], at + 1) if message[at] < 0x80 else _varint(message, at)
        if size is None or at + size > len(message):
            raise ValueError("holds a message that is none")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - (1 << 64) if value >= 1 << 63 else value, at
        shift += 7
    raise ValueError("holds a message that is none")


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def _masked(data: bytes) -> int:
    """Return the checksum of TFRecord: CRC-32C, rotated and offset."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


BLOCK = 32768
MAGICS = (b":W&B", b":SWL")
_HEAD = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
# Fields of `Record` in wandb_internal.proto.
_HISTORY, _STATS = 2, 7
# Of `Record` of SwanLab 0.10.
_SCALAR = 13


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
    found.note = _take_records(data, {_HISTORY: partial(_take_history, found=found)})
    return found


def read_swanlab(data: bytes) -> WrittenScalars:
    """Return the scalars of a SwanLab run, by key."""
    found = WrittenScalars()

    def take(message: bytes) -> None:
        parts = dict(fields(message))
        key, step, value = parts.get(1), parts.get(2, 0), parts.get(5)
        number = dict(fields(value)).get(1) if isinstance(value, bytes) else None
        if isinstance(key, bytes) and isinstance(step, int) and isinstance(number, bytes):
            figure = struct.unpack("<d", number)[0] if len(number) == 8 else 0.0
            found.add(key.decode("utf-8", "replace"), step, measured(figure))

    found.note = _take_records(data, {_SCALAR: take})
    return found


def read_wandb_system(data: bytes) -> SystemReadings:
    """Return the system metrics that were recorded beside the history."""
    found = SystemReadings()
    found.note = _take_records(data, {_STATS: partial(_take_system, found=found)})
    return found


def read_whole_wandb(data: bytes) -> tuple[WrittenScalars, SystemReadings]:
    """Return the history and the system metrics; a long file takes seconds, so it is read once for both."""
    history, system = WrittenScalars(), SystemReadings()
    takers = {_HISTORY: partial(_take_history, found=history), _STATS: partial(_take_system, found=system)}
    history.note = system.note = _take_records(data, takers)
    return history, system


def _take_system(message: bytes, found: SystemReadings) -> None:
    reading = _system_reading(message)
    if reading is not None:
        found.readings.append(reading)


def _take_records(data: bytes, takers: Mapping[int, Callable[[bytes], None]]) -> str | None:
    """Take the records of these kinds; where the file could not be read on, None if it could to its end."""
    if not data.startswith(MAGICS):
        return "is no file of a W&B run"
    try:
        for record in _records(data):
            for number, value in fields(record):
                if number in takers and isinstance(value, bytes):
                    takers[number](value)
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
