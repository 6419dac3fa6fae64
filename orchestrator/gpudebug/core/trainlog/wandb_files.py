"""The history of a Weights & Biases run as its offline folder holds it: `run-ID.wandb`.

LevelDB's log frames (blocks of 32 KiB, each part with a CRC-32) around protobuf records.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from math import isfinite

from gpudebug.core.trainlog.event_files import WrittenScalars, fields
from gpudebug.core.trainlog.written_tables import as_number

BLOCK = 32768
MAGIC = b":W&B"
_HEAD = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def read_wandb(data: bytes) -> WrittenScalars:
    """The numbers of the history, by key; nested ones as `a.b`."""
    found = WrittenScalars()
    if data[: len(MAGIC)] != MAGIC:
        found.note = "is no file of a W&B run"
        return found
    try:
        for record in _records(data):
            for number, value in fields(record):
                if number == 2 and isinstance(value, bytes):
                    _take_history(value, found)
    except ValueError as e:
        found.note = str(e)
    return found


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
