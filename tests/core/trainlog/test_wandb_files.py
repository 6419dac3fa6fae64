"""The history of a Weights & Biases run, in the frames that its offline folder has."""

from __future__ import annotations

import json
import struct
import time
import zlib

from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.wandb_files import BLOCK, read_wandb


def field(number: int, data: bytes) -> bytes:
    size = len(data)
    length = b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    key = number << 3 | 2
    head = bytes([key]) if key < 0x80 else bytes([key & 0x7F | 0x80, key >> 7])
    return head + length + bytes([size]) + data


def history(step: int, **values: object) -> bytes:
    row = {**values, "_step": step}
    items = [field(1, field(1, k.encode()) + field(16, json.dumps(v).encode())) for k, v in row.items()]
    return field(2, b"".join(items))


def framed(records: list[bytes]) -> bytes:
    """As wandb's DataStore writes them: no part crosses a block of 32 KiB, the first with the file's head."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for whole in records:
        record, first = whole, True
        while True:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += b"\0" * left
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
            if not record:
                break
    return bytes(out)


ROWS = [history(10 * n, **{"charts/episodic_return": float(n), "note": "x" * 900}) for n in range(100)]
DATA = framed(ROWS)
RETURNS = [(10 * n, float(n)) for n in range(100)]


def test_the_history_over_several_blocks() -> None:
    assert len(DATA) > 2 * BLOCK
    found = read_wandb(DATA)
    assert (found.values, found.note) == ({"charts/episodic_return": RETURNS}, None)


def test_nan_is_a_value_and_text_is_none() -> None:
    found = read_wandb(framed([history(1, loss="NaN", name="run", flag=True)]))
    assert list(found.values) == ["loss"]
    assert str(found.values["loss"]) == "[(1, nan)]"


def test_a_step_beyond_all_numbers_and_a_value_too_large_for_one() -> None:
    rows = [history(1, loss=3.0), field(2, field(1, field(1, b"loss") + field(16, b"1" + b"0" * 400)))]
    endless = [
        field(1, field(1, name) + field(16, text)) for name, text in ((b"_step", b"1e999"), (b"loss", b"2"))
    ]
    found = read_wandb(framed([*rows, field(2, b"".join(endless))]))
    assert (found.values, found.note) == ({"loss": [(1, 3.0), (0, 2.0)]}, None)


@given(st.integers(0, len(DATA) - 1))
def test_a_file_that_is_cut_short_gives_what_stands_before(size: int) -> None:
    found = read_wandb(DATA[:size])
    values = found.values.get("charts/episodic_return", [])
    assert RETURNS[: len(values)] == values
    assert len(values) < len(RETURNS)


@given(st.integers(7, len(DATA) - 1), st.integers(1, 255))
def test_a_damaged_file_never_gives_another_value(at: int, flip: int) -> None:
    damaged = bytearray(DATA)
    damaged[at] ^= flip
    found = read_wandb(bytes(damaged))
    values = found.values.get("charts/episodic_return", [])
    assert RETURNS[: len(values)] == values


def test_a_record_of_many_small_parts_takes_no_longer_than_its_bytes() -> None:
    """To copy all that was read for each part took minutes with a file of 8 MB."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    while len(out) < 2_300_000:
        left = BLOCK - len(out) % BLOCK
        if left < 8:
            out += b"\0" * left
            continue
        kind, part = (2 if len(out) < BLOCK else 3), b"x" * (left - 7 if len(out) < 2_000_000 else 1)
        out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
    data = bytes(out)
    begun = time.process_time()
    assert read_wandb(data).note is None
    assert time.process_time() - begun < 1.5


def test_another_file_is_named() -> None:
    assert read_wandb(b"PK\x03\x04").note == "is no file of a W&B run"
