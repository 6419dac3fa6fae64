"""Gzip made plain as it comes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from gpudebug.core.trace.inflate import Inflate

PLAIN = bytes(range(256)) * 2000
PACKED = gzip.compress(PLAIN)
TWO = gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]) + bytes(9)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 1000, 10**7])
@pytest.mark.parametrize(
    "data", [PLAIN, PACKED, gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]) + bytes(9)]
)
def test_plain_and_packed_bytes_come_out_plain(data: bytes, size: int) -> None:
    if size == 1 and data is PLAIN:
        data = PLAIN[:3000]
        assert b"".join(Inflate(cut(data, 1))) == data
        return
    source = Inflate(cut(data, size))
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
    source = Inflate(cut(bytes(data), 4096))
    text = b"".join(source)
    assert text.startswith(b"0 1 2 3 ")
    assert len(text) > 10_000
    assert source.broken


def test_nothing_in_gives_nothing() -> None:
    assert list(Inflate([])) == []
    assert b"".join(Inflate([b"", b"\x1f"])) == b"\x1f"
