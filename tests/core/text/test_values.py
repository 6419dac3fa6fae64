"""Whether two texts write one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.values import (
    DeviceChoice,
    QuantityError,
    parse_device,
    parse_duration,
    parse_size,
    same_value,
    short_digest,
)


def test_known_digests() -> None:
    """Written into run folders, so they may never change."""
    assert short_digest(b"") == "e4a6a0577479b2b4"
    assert short_digest(b"gpudebug") == short_digest(b"gpudebug")
    assert short_digest(b"--set --lr=1") != short_digest(b"--set --lr=2")


@given(st.binary(), st.binary())
def test_different_bytes_have_different_digests(a: bytes, b: bytes) -> None:
    assert (short_digest(a) == short_digest(b)) == (a == b)
    assert len(short_digest(a)) == 16 and int(short_digest(a), 16) >= 0


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


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("8", "8.0", True),
        ("1e-4", "0.0001", True),
        ("True", "true", True),
        ("1", "True", True),
        ("off", "False", True),
        ("0", "True", False),
        ("[1, 2]", "1 2", True),
        ("(1, 2)", "1,2", True),
        ("[1, 2]", "[1, 3]", False),
        ("1", "1 1", False),
        ("'adam'", "adam", True),
        ("./out/", "out", True),
        ("nan", "nan", True),
        ("inf", "1", False),
        ("", "None", False),
        ("\u0661", "1", False),
        ("bf16", "fp16", False),
    ],
)
def test_values_are_compared_as_what_they_are(a: str, b: str, same: bool) -> None:
    assert same_value(a, b) is same
    assert same_value(b, a) is same


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_however_it_is_written(value: float) -> None:
    assert same_value(repr(value), f"{value:.17g}")
    assert not same_value(repr(value), repr(value * 2 + 1)) or value == -1


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("auto", DeviceChoice("auto")),
        ("nvml", DeviceChoice("nvml")),
        ("cpu", DeviceChoice("cpu")),
        ("cpu:2", DeviceChoice("cpu", cores=2)),
        ("cpu:0.5", DeviceChoice("cpu", cores=0.5)),
        ("replay:runs/0001-x", DeviceChoice("replay", path="runs/0001-x")),
        ("replay:runs/0001-x@4x", DeviceChoice("replay", path="runs/0001-x", speed=4)),
        ("replay:a@66.6667x", DeviceChoice("replay", path="a", speed=66.6667)),
        ("replay:a@b", DeviceChoice("replay", path="a@b")),
    ],
)
def test_a_device_is_taken_apart(text: str, choice: DeviceChoice) -> None:
    assert parse_device(text) == choice
