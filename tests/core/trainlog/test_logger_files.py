"""TensorBoard's event files: what a real writer wrote, and what is left of it when it is damaged."""

from __future__ import annotations

import struct
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import monitors

from gpudebug.core.trainlog.logger_files import (
    BLOCK,
    WrittenScalars,
    fields,
    read_events,
    read_swanlab,
    read_wandb,
    read_wandb_system,
    read_whole_wandb,
)

FILE = next((Path(__file__).parents[2] / "data" / "learning").glob("events*"))
"""Written by tensorboardX 2.6.5: 50 values of two tags, every 100 steps."""
DATA = FILE.read_bytes()


def test_the_scalars_of_a_real_file() -> None:
    found = read_events(DATA)
    assert found.note is None
    assert found.values["rollout/ep_rew_mean"] == [(100 * n, 1.5 * n) for n in range(50)]
    assert [step for step, _ in found.values["losses/value_loss"]] == [100 * n for n in range(50)]


@given(st.integers(1, len(DATA) - 1))
def test_a_file_that_is_cut_short_gives_what_stands_before(size: int) -> None:
    whole, found = read_events(DATA), read_events(DATA[:size])
    for tag, values in found.values.items():
        assert whole.values[tag][: len(values)] == values
    lost = sum(map(len, whole.values.values())) - sum(map(len, found.values.values()))
    assert found.note is None or found.note.startswith("is cut short at byte ")
    assert lost > 0 or found.note is None or size >= len(DATA) - 60


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_damaged_file_never_gives_another_value(at: int, flip: int) -> None:
    damaged = bytearray(DATA)
    damaged[at] ^= flip
    whole, found = read_events(DATA), read_events(bytes(damaged))
    assert found.note is not None
    for tag, values in found.values.items():
        assert whole.values[tag][: len(values)] == values


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_named(data: bytes) -> None:
    found = read_events(data)
    assert not data or found.values or found.note is not None


def test_a_message_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="holds a message that is none"):
        list(fields(b"\x12\xff"))
    assert list(fields(b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")) == [(2, -1)]
    assert list(fields(b"\x15" + struct.pack("<f", 1.0))) == [(2, struct.pack("<f", 1.0))]


ROWS = [
    monitors.history(10 * n, **{"charts/episodic_return": float(n), "note": "x" * 900}) for n in range(100)
]
WANDB = monitors.wandb(ROWS)
RETURNS = [(10 * n, float(n)) for n in range(100)]


def test_the_history_over_several_blocks() -> None:
    assert len(WANDB) > 2 * BLOCK
    found = read_wandb(WANDB)
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


@given(st.integers(0, len(WANDB) - 1))
def test_a_wandb_file_that_is_cut_short_gives_what_stands_before(size: int) -> None:
    found = read_wandb(WANDB[:size])
    values = found.values.get("charts/episodic_return", [])
    assert RETURNS[: len(values)] == values
    assert len(values) < len(RETURNS)


@given(st.integers(7, len(WANDB) - 1), st.integers(1, 255))
def test_a_damaged_wandb_file_never_gives_another_value(at: int, flip: int) -> None:
    damaged = bytearray(WANDB)
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


def test_swanlab_writes_a_scalar_a_record() -> None:
    def scalar(key: str, step: int, value: float) -> bytes:
        number = b"\x09" + struct.pack("<d", value)
        row = monitors.message(1, key.encode()) + monitors.integer(2, step) + monitors.message(5, number)
        return monitors.integer(1, step + 1) + monitors.message(13, row)

    records = [scalar("loss", step, 1 / (step + 1)) for step in range(4)] + [scalar("lr", 3, 0.1)]
    data = b":SWL" + monitors.wandb(records)[4:]
    found = read_swanlab(data)
    assert (found.note, found.values["lr"]) == (None, [(3, 0.1)])
    assert found.values["loss"] == [(0, 1.0), (1, 0.5), (2, 1 / 3), (3, 0.25)]
    assert read_swanlab(data[:-5]).note is not None


def test_of_figures_that_are_none_of_learning_the_last_is_kept() -> None:
    found = WrittenScalars()
    for step in range(3):
        for at in range(600):
            found.add(f"grad/{at}/norm", step, 1.0)
        found.add("train/CrossEntropyLoss", step, 2.0 - step)
    assert len(found.values) == 513
    assert found.values["grad/0/norm"] == [(2, 1.0)]
    assert found.values["train/CrossEntropyLoss"] == [(0, 2.0), (1, 1.0), (2, 0.0)]


def test_system_metrics_have_their_time() -> None:
    records = [monitors.history(1, loss=2.0), monitors.stats(1_764_928_878.25, gpu__0__gpu=40.0, cpu=3.0)]
    found = read_wandb_system(monitors.wandb(records))
    assert found.note is None
    (reading,) = found.readings
    assert (reading.time, reading.values) == (1_764_928_878.25, {"gpu.0.gpu": 40.0, "cpu": 3.0})
    assert read_wandb_system(b"log").note == "is no file of a W&B run"


def test_a_wandb_run_is_read_once_for_both() -> None:
    data = monitors.wandb_run(60, 1)
    for cut in (data, data[: len(data) // 2]):
        assert read_whole_wandb(cut) == (read_wandb(cut), read_wandb_system(cut))
