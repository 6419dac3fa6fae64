"""Durations and sizes: what is read, what is refused, and that what is printed reads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.units import QuantityError, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("90s", 90),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("500ms", 0.5),
        ("0.2s", 0.2),
        ("2d", 172800),
        ("1.5h", 5400),
        ("45", 45),
        ("0.5", 0.5),
        (" 5m ", 300),
        ("3min", 180),
        ("1m500ms", 60.5),
        ("0", 0),
    ],
)
def test_durations_that_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "nan",
        "inf",
        "-5s",
        "1_0s",
        "١٢s",
        "1:30",
        "5 minutes",
        "5x",
        "m",
        "30m1h",
        "1h1h",
        "1e3s",
        "5s6",
        "1h  30m",
        ".5s",
        "9" * 5000,
        "400d",
        "5s\n",
        "0x10",
    ],
)
def test_durations_that_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 2**30),
        ("500MB", 500 * 2**20),
        ("64KiB", 65536),
        ("1.5g", 1.5 * 2**30),
        ("17", 17),
        ("17 b", 17),
        ("1tb", 2**40),
        ("2 GiB", 2**31),
    ],
)
def test_sizes_are_binary(text: str, size: float) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "-1GB", "2XB", "1_000", "nan", "1e9", "٢GB", "9" * 5000, "2GBB", "2000000TB"]
)
def test_sizes_that_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_size(text)


@given(st.integers(0, 300), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_a_written_duration_is_read_to_the_millisecond(d: int, h: int, m: int, s: int, ms: int) -> None:
    seconds = ((d * 24 + h) * 60 + m) * 60 + s + ms / 1000
    assert parse_duration(f"{d}d{h}h{m}m{s}s{ms}ms") == pytest.approx(seconds, abs=1e-9)


@given(st.text(max_size=30))
def test_no_text_raises_anything_else(text: str) -> None:
    for parse in (parse_duration, parse_size):
        try:
            assert parse(text) >= 0
        except QuantityError:
            continue
