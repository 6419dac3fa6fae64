"""TensorBoard's event files: what a real writer wrote, and what is left of it when it is damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.event_files import fields, read_events

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
