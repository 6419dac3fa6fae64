"""The history of a Weights & Biases run, in the frames that its offline folder has."""

from __future__ import annotations

import struct
import time
import zlib

from hypothesis import given
from hypothesis import strategies as st
from tests.support import monitors

from gpudebug.core.trainlog.wandb_files import BLOCK, read_wandb, read_wandb_system

ROWS = [
    monitors.history(10 * n, **{"charts/episodic_return": float(n), "note": "x" * 900}) for n in range(100)
]
DATA = monitors.wandb(ROWS)
RETURNS = [(10 * n, float(n)) for n in range(100)]


def test_the_history_over_several_blocks() -> None:
    assert len(DATA) > 2 * BLOCK
    found = read_wandb(DATA)
    assert (found.values, found.note) == ({"charts/episodic_return": RETURNS}, None)


def test_nan_is_a_value_and_text_is_none() -> None:
    found = read_wandb(monitors.wandb([monitors.history(1, loss="NaN", name="run", flag=True)]))
    assert list(found.values) == ["loss"]
    assert str(found.values["loss"]) == "[(1, nan)]"


def test_a_step_beyond_all_numbers_and_a_value_too_large_for_one() -> None:
    rows = [
        monitors.history(1, loss=3.0),
        monitors.message(
            2, monitors.message(1, monitors.message(1, b"loss") + monitors.message(16, b"1" + b"0" * 400))
        ),
    ]
    endless = [
        monitors.message(1, monitors.message(1, name) + monitors.message(16, text))
        for name, text in ((b"_step", b"1e999"), (b"loss", b"2"))
    ]
    found = read_wandb(monitors.wandb([*rows, monitors.message(2, b"".join(endless))]))
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


def test_system_metrics_have_their_time() -> None:
    records = [monitors.history(1, loss=2.0), monitors.stats(1_764_928_878.25, gpu__0__gpu=40.0, cpu=3.0)]
    found = read_wandb_system(monitors.wandb(records))
    assert found.note is None
    (reading,) = found.readings
    assert (reading.time, reading.values) == (1_764_928_878.25, {"gpu.0.gpu": 40.0, "cpu": 3.0})
    assert read_wandb_system(b"log").note == "is no file of a W&B run"
