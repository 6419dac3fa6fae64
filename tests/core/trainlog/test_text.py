"""Segments, plain text, numbers."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import itertools
from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.text import (
    HEAD,
    SEAM,
    TAIL,
    Splitter,
    clock,
    number,
    plain,
    readable,
    skeleton,
    stamp_seconds,
)

PIECES = st.lists(
    st.sampled_from(
        [b"loss 1.5", b"\r", b"\n", b"\x08\x08", b"\x1b[2K", b"\x1b[1A", b"\x1b[31m", b"\x1b", b"[", b"A", "é".encode(), b""]
    ),
    max_size=30,
).map(b"".join)  # fmt: skip


def segments(chunks: list[bytes]) -> list[bytes]:
    splitter = Splitter()
    found = [segment for chunk in chunks for segment, _ in splitter.push(chunk, None)]
    return [*found, splitter.pending()[0]]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(PIECES, st.lists(st.integers(0, 200), max_size=12))
def test_segments_do_not_depend_on_the_chunks(data: bytes, places: list[int]) -> None:
    assert [s for s in segments(cut(data, places)) if s] == [s for s in segments([data]) if s]


@pytest.mark.parametrize("size", [HEAD + TAIL, HEAD + TAIL + 1, 3 * (HEAD + TAIL)])
@pytest.mark.parametrize("chunk", [1 << 30, 65536, 1000])
def test_an_overlong_segment_keeps_its_ends_however_it_comes(size: int, chunk: int) -> None:
    data = (b"0123456789" * (size // 10 + 1))[:size]
    whole = data + b"\nnext\n"
    found = [s for s in segments([whole[i : i + chunk] for i in range(0, len(whole), chunk)]) if s]
    expected = data if size <= HEAD + TAIL else data[:HEAD] + SEAM + data[-TAIL:]
    assert found == [expected, b"next"]


def test_a_segment_has_the_time_of_its_last_byte() -> None:
    splitter = Splitter()
    assert list(splitter.push(b"step 1", 1.0)) == []
    assert splitter.pending() == (b"step 1", 1.0)
    assert list(splitter.push(b"\rstep 2\nst", 5.0)) == [(b"step 1", 1.0), (b"step 2", 5.0)]
    assert list(splitter.push(b"ep 3\n", 9.0)) == [(b"step 3", 9.0)]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[1m 21/125\x1b[0m \xe2\x94\x81\xe2\x94\x81 9ms", b" 21/125  9ms"),
        ("937µs/step".encode(), b"937us/step"),
        (b"a\x07\tb\x00", b"a\tb"),
        (b"\x1b]0;title\x07x", b"x"),
    ],
)
def test_plain_drops_what_is_drawn(raw: bytes, text: bytes) -> None:
    assert plain(raw) == text


@given(st.binary(max_size=20000))
def test_plain_is_short_printable_ascii(data: bytes) -> None:
    text = plain(data)
    assert len(text) <= 4100
    assert all(byte == 9 or 32 <= byte < 127 for byte in text)
    assert len(skeleton(text)) == len(text)


def test_readable_has_no_control_and_no_direction_characters() -> None:
    assert readable("\x1b[31mübel\x1b[0m\u202e!\x07 ".encode(), 100) == "übel!"
    assert readable(b"x" * 1000, 10) == "xxxxxxx..."


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        ("16,991", 16991.0),
        ("1.0e-03", 1e-3),
        ("1K", 1000.0),
        ("2.5M", 2.5e6),
        ("-inf", -inf),
        ("inf.0", inf),
        ("-inf.0", -inf),
        ("802515937784318471042561474560.0000", 8.025159377843185e29),
        ("loss", None),
        ("", None),
        ("1.2.3", None),
    ],
)
def test_numbers_as_they_are_printed(text: str, value: float | None) -> None:
    assert number(text) == value
    assert number(text.encode()) == value


def test_numbers_that_no_sum_of_squares_holds_are_infinite_or_nothing() -> None:
    assert [number(text) for text in ("1e308", "-1e101", "1e-308", "5e-324", "1e100", "1e-100")] == [
        *(inf, -inf),
        *(0.0, 0.0),
        *(1e100, 1e-100),
    ]


@pytest.mark.parametrize("text", ["nan", "NaN", "nan.0"])
def test_nan_as_it_is_printed(text: str) -> None:
    found = number(text)
    assert found is not None and isnan(found)


@pytest.mark.parametrize(
    ("text", "seconds"), [(b"00:04", 4.0), (b"1:02:03", 3723.0), (b"2 days, 0:00:01.5", 1.5)]
)
def test_clock(text: bytes, seconds: float) -> None:
    assert clock(text) == seconds


def test_colours_that_were_copied_as_text_are_taken_out() -> None:
    for lost in ("", "^[", "\\x1b", "\\033", "\\e"):
        line = f"{lost}[31mstep: 5  {lost}[1;32mloss: 2.5  {lost}[38;5;208mlr{lost}[0m 1"
        assert plain(line.encode()) == b"step: 5  loss: 2.5  lr 1"
        assert readable(line.encode(), 100) == "step: 5  loss: 2.5  lr 1"
    assert plain(b"[30m elapsed, 5 [it/s]") == b"[30m elapsed, 5 [it/s]"
    assert plain(b"[10m 3s] of [40m 2s]") == b"[10m 3s] of [40m 2s]"


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ("2026-11-20 22:22:01", "2026-11-20 22:22:03,500", 2.5),
        ("2026/11/20 23:59:59", "2026/11/21 00:00:01", 2.0),
        ("2026-11-30 23:59:59", "2026-12-01 00:00:01", 2.0),
        ("2028-02-28 23:59:59", "2028-03-01 00:00:01", 86402.0),
        ("2026-12-31 23:59:59", "2027-01-01 00:00:01", 2.0),
        ("02/28 23:59:59", "03/01 00:00:01", 2.0),
        ("11/20/2026 22:18:59", "11/20/2026 22:19:00", 1.0),
        ("11/20 22:20:08", "11/20 22:20:09", 1.0),
        ("2026-11-20T22:22:01.250Z", "2026-11-20T22:22:01.750Z", 0.5),
    ],
)
def test_differences(before: str, after: str, seconds: float) -> None:
    a, b = stamp_seconds(before), stamp_seconds(after)
    assert a is not None and b is not None
    assert b - a == pytest.approx(seconds)


@pytest.mark.parametrize("days", [("30/11/26", "01/12/26"), ("11/30/26", "12/01/26")])
def test_a_date_of_two_digits_each_is_read_in_any_order(days: tuple[str, str]) -> None:
    before, after = (stamp_seconds(f"{day} 10:00:00") for day in ("29/11/26", "30/11/26"))
    assert before is not None and after == before + 86400
    before, after = (stamp_seconds(f"{day} 10:00:00") for day in days)
    assert before is not None and after is not None and after < before


def test_the_day_before_a_time_is_no_step() -> None:
    reader = LogReader()
    for i in range(40):
        at = f"{12 + (20 + i) // 24}/09/26 {(20 + i) % 24:02}:00:00"
        reader.feed(f"[{at}] INFO Epoch {i}: v_loss 2.5 loss {3 - i / 20:.2f}\n".encode())
    found = reader.summary()
    assert found.progress is not None
    assert (found.progress.unit, found.progress.done) == ("epochs", 40)
    assert found.progress.per_s == pytest.approx(1 / 3600)


def test_no_stamp() -> None:
    assert stamp_seconds("yesterday") is None


def test_a_log_without_arrival_times_has_its_rate_from_the_stamps() -> None:
    reader = LogReader()
    for i in range(20):
        reader.feed(f"2026-11-20 22:10:{2 * i:02} step {10 * i} loss 1.0\n".encode())
    summary = reader.summary()
    assert (summary.steps_per_s, summary.rate_source) == (5.0, "stamps")
    assert summary.step_times == ()
    assert all(point.time is None for point in summary.loss)
