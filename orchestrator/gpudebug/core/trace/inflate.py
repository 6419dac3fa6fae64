"""Bytes that may be gzip, made plain as they come."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

MAGIC = b"\x1f\x8b"
# What one call of the inflater may give: a compressed chunk can hold a thousand times its size.
_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


class Inflate:
    """Iterates over plain bytes; `broken` says afterwards that the gzip stream is cut off or damaged."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.broken = False
        self._chunks = iter(chunks)

    def __iter__(self) -> Iterator[bytes]:
        head = b""
        for chunk in self._chunks:
            head += chunk
            if len(head) >= len(MAGIC):
                break
        if head.startswith(MAGIC):
            yield from self._inflated(head)
        elif head:
            yield head
            yield from self._chunks

    def _inflated(self, data: bytes) -> Iterator[bytes]:
        stream = zlib.decompressobj(_GZIP)
        try:
            while True:
                plain = stream.decompress(data, _PIECE)
                if plain:
                    yield plain
                data = stream.unconsumed_tail
                if stream.eof:
                    # Zeros behind a member are padding; anything else is the next member.
                    data = stream.unused_data.lstrip(b"\0") or next(self._chunks, b"").lstrip(b"\0")
                    if not data:
                        return
                    stream = zlib.decompressobj(_GZIP)
                elif not data and not plain:
                    data = next(self._chunks, b"")
                    if not data:
                        self.broken = True
                        return
        except zlib.error:
            self.broken = True
