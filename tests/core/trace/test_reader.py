"""Reading traces of any layout, broken or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import traces

from gpudebug.core.errors import GpudebugError
from gpudebug.core.trace.events import Event
from gpudebug.core.trace.reader import Inflate, TraceReader, objects

PLAIN = bytes(range(256)) * 2000
PACKED = gzip.compress(PLAIN)
TWO = gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]) + bytes(9)


def cut_off(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 1000, 10**7])
@pytest.mark.parametrize(
    "data", [PLAIN, PACKED, gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]) + bytes(9)]
)
def test_plain_and_packed_bytes_come_out_plain(data: bytes, size: int) -> None:
    if size == 1 and data is PLAIN:
        data = PLAIN[:3000]
        assert b"".join(Inflate(cut_off(data, 1))) == data
        return
    source = Inflate(cut_off(data, size))
    assert b"".join(source) == PLAIN
    assert not source.broken


def test_a_chunk_that_holds_much_comes_in_pieces() -> None:
    pieces = list(Inflate([gzip.compress(bytes(50 << 20))]))
    assert sum(map(len, pieces)) == 50 << 20
    assert max(map(len, pieces)) <= 1 << 20


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_what_was_there_before_the_damage_comes_out(damage: str) -> None:
    data = bytearray(gzip.compress(b"".join(b"%d " % i for i in range(200_000)), 1))
    half = len(data) // 2
    if damage == "cut":
        del data[half:]
    else:
        data[half : half + 50] = bytes(50)
    source = Inflate(cut_off(bytes(data), 4096))
    text = b"".join(source)
    assert text.startswith(b"0 1 2 3 ")
    assert len(text) > 10_000
    assert source.broken


def test_nothing_in_gives_nothing() -> None:
    assert list(Inflate([])) == []
    assert b"".join(Inflate([b"", b"\x1f"])) == b"\x1f"


texts = st.text(st.sampled_from('ab"\\{}[],:é\n'), max_size=8)
values = st.recursive(
    st.none() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(texts, values, max_size=3), max_size=5),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_ends_are_where_the_decoder_sees_them(
    found: list[object], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(found, indent=indent, ensure_ascii=ascii_only)
    ends, end = objects(text[1:].encode())
    assert end == len(text[1:].encode()) - 1
    wanted, at = [], 1
    for _ in found:
        at = text.index("{", at)
        at = json.JSONDecoder().raw_decode(text, at)[1]
        wanted.append(len(text[1:at].encode()))
    assert ends == wanted


@given(st.lists(st.dictionaries(texts, values, max_size=2), min_size=1, max_size=4), st.data())
def test_a_cut_text_has_the_objects_before_the_cut(found: list[object], data: st.DataObject) -> None:
    text = json.dumps(found)[1:].encode()
    ends, _ = objects(text)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert objects(text[:cut]) == ([e for e in ends if e <= cut], None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", ([], None)),
        (b"]", ([], 0)),
        (b'{"a": "\\\\"}, {"b": "\\\\\\"}"}]', ([11, 27], 27)),
        (b'1, [2], {}] , "x": [{}]}', ([10], 10)),
        (b"}}", ([], 0)),
    ],
)
def test_edges(text: bytes, found: tuple[list[int], int | None]) -> None:
    assert objects(text) == found


EVENTS = traces.training(4)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def read(data: bytes, batch: int = 1 << 20, size: int = 1 << 16) -> tuple[list[Event], TraceReader]:
    reader = TraceReader(cut(data, size), batch)
    return [event for events in reader.batches() for event in events], reader


def starts(events: list[Event]) -> list[float]:
    return [event.ts for event in events]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("batch", [500, 5000, 1 << 20])
@pytest.mark.parametrize("layout", ["lines", "one", "pretty"])
def test_every_layout_gives_the_same_events(layout: str, batch: int, packed: bool) -> None:
    data = traces.text(EVENTS, layout)
    found, reader = read(gzip.compress(data) if packed else data, batch)
    assert starts(found) == [e["ts"] for e in EVENTS]
    assert [e.name for e in found] == [e["name"] for e in EVENTS]
    assert not reader.truncated
    assert reader.unreadable == 0
    assert reader.metadata["distributedInfo"]["world_size"] == 2
    assert reader.metadata["traceName"] == "synthetic.json"


nasty = st.sampled_from(
    [
        '}, {"ph": "X"',
        "\\",
        '"',
        '}], "traceEvents": [{',
        [{"name": "not an event", "ts": 1}, {"name": "nor this", "ts": 2}],
        {"deep": [[{"a": 1}, {"name": {}}]]},
        None,
        "plain",
    ]
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["Input Dims", "note", "x"]), nasty, max_size=2), max_size=30),
    st.integers(1, 400),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_braces_in_strings_and_nested_lists_mislead_nobody(
    args: list[Any], batch: int, indent: int | None, bare: bool
) -> None:
    events = [{"ph": "X", "name": f"n{i}", "ts": i, "dur": 1, "args": a} for i, a in enumerate(args)]
    whole = events if bare else {"schemaVersion": 1, "traceEvents": events, "after": [{"x": 1}, {"y": 2}]}
    found, reader = read(json.dumps(whole, indent=indent).encode(), batch, 64)
    assert [e.name for e in found] == [e["name"] for e in events]
    assert not reader.truncated
    assert bare or reader.metadata["after"] == [{"x": 1}, {"y": 2}]


def test_a_trace_cut_anywhere_gives_what_is_there() -> None:
    events = EVENTS[:6]
    data = traces.text(events, "lines")
    first = data.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    ends = [data.index(json.dumps(e).encode()) + len(json.dumps(e)) for e in events]
    for size in range(first, len(data)):
        found, reader = read(data[:size], 300)
        assert len(found) == sum(end <= size for end in ends)
        assert reader.truncated, size


def test_a_cut_gzip_is_truncated() -> None:
    packed = gzip.compress(traces.text(EVENTS))
    found, reader = read(packed[: len(packed) // 2])
    assert 0 < len(found) < len(EVENTS)
    assert reader.truncated


@pytest.mark.parametrize(
    ("data", "count", "truncated"),
    [
        (b'[{"name": "a", "ts": 1}', 1, False),
        (b'[{"name": "a", "ts": 1},', 1, False),
        (b'[{"name": "a", "ts": 1},\n{"na', 1, True),
        (b'\xef\xbb\xbf \n[{"name": "a"}]\n', 1, False),
        (b'{"traceEvents": []}', 0, False),
        (b'{"traceEvents":[{"name": "a"},]}', 1, False),
        (b'{"traceEvents":[{"name": "a"}]', 1, True),
        (b'{"a": {"b": [1]}, "traceEvents" : [ {"name": "a"} ] , "z": 1 }', 1, False),
        (b"[1, 2, null]", 0, False),
    ],
)
def test_endings(data: bytes, count: int, truncated: bool) -> None:
    found, reader = read(data)
    assert (len(found), reader.truncated) == (count, truncated)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"hello", "neither a JSON object nor an array"),
        (b'{"sections": []}', "no traceEvents"),
        (b'{"a": "' + b"x" * 300_000, "no traceEvents"),
        (b"\x1f\x8b\x08\x00junk", "cut off or damaged before"),
    ],
)
def test_what_is_no_trace_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(GpudebugError, match=says) as caught:
        read(data)
    assert caught.value.next


BROKEN = [
    ('{"name": "a", "ts": 1, "args": {"memory bandwidth (GB/s)": nan}}', 1.0),
    ('{"name": "a", "ts": 1, "args": {"memory bandwidth (GB/s)": -Infinity}}', 1.0),
    ('{"name": "a", "ts": "1.5", "dur": "2"}', 1.5),
    ('{"name": "a", "ts": 1, "args": {"correlation": "7"}}', 1.0),
    ('{"name": "a", "ts": {}}', None),
    ('{"name": 1, "ts": 1, "args": []}', None),
    ('{"name": "a" "ts": 1}', None),
]


@pytest.mark.parametrize(("event", "start"), BROKEN)
def test_a_broken_event_costs_at_most_itself(event: str, start: float | None) -> None:
    good = [json.dumps({"name": "good", "ts": i}) for i in range(50)]
    data = ('{"traceEvents": [' + ",\n".join([*good, event, *good]) + "]}").encode()
    found, reader = read(data, 700)
    assert sum(e.name == "good" for e in found) == 100
    assert [e.ts for e in found if e.name != "good"] == ([] if start is None else [start])
    assert reader.unreadable == (start is None)


def test_broken_text_in_a_name_is_replaced() -> None:
    found, reader = read(b'[{"name": "k\xff\xfe", "ts": 1}, {"name": "b", "ts": 2}]')
    assert [e.name for e in found] == ["k\ufffd\ufffd", "b"]
    assert reader.unreadable == 0


def test_an_event_longer_than_a_batch_is_read() -> None:
    long = {"name": "long", "ts": 5, "args": {"x": "y" * 50_000}}
    events = [{"name": "a", "ts": 1}, long, {"name": "b", "ts": 9}]
    found, _ = read(json.dumps({"traceEvents": events}).encode(), 1000, 100)
    assert [e.name for e in found] == ["a", "long", "b"]
