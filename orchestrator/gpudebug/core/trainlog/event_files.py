"""Scalars in TensorBoard's event files: TFRecord frames with their checksums, around protobuf messages.

Read is what training loops write: `simple_value`, and tensors of one number. A file that is cut short or
damaged gives what comes before that, and the answer names it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpudebug.core.trainlog.text import measured

LARGEST_SCALAR = 4096
"""Longer messages hold images, graphs and histograms; they are passed over."""
MAX_TAGS = 512
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FLOAT, _DOUBLE = 1, 2


@dataclass(slots=True)
class WrittenScalars:
    """(step, value) by tag, in the order of the file; `note` says where it could not be read on."""

    values: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    note: str | None = None

    def add(self, tag: str, step: int, value: float) -> None:
        if tag in self.values or len(self.values) < MAX_TAGS:
            self.values.setdefault(tag, []).append((step, value))


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
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, at = _varint(message, at)
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
