"""The events of a trace, in batches, from chunks of bytes: any size, any layout, cut off or not."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpudebug.core.errors import GpudebugError
from gpudebug.core.lazy import regex
from gpudebug.core.trace.events import Event

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


_QUOTE, _BACKSLASH, _CLOSE = ord('"'), ord("\\"), ord("}")
_STRUCTURAL = np.zeros(256, bool)
_STRUCTURAL[list(b'"\\{}[]')] = True
_OPENING = np.zeros(256, bool)
_OPENING[list(b"{[")] = True


def objects(text: bytes | bytearray) -> tuple[list[int], int | None]:
    """Offsets behind each complete object of the array, and of its closing bracket if that is there.

    `text` begins behind the array's opening bracket or behind one of its elements. Braces in strings and
    nested values are told apart; what is behind the closing bracket is not looked at.
    """
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(_STRUCTURAL[data])
    what = data[at]
    if (what == _BACKSLASH).any():
        kept = ~_escaped(at, what) & (what != _BACKSLASH)
        at, what = at[kept], what[kept]
    quote = what == _QUOTE
    outside = ~quote & (np.cumsum(quote) % 2 == 0)
    at, what = at[outside], what[outside]
    depth = np.cumsum(np.where(_OPENING[what], 1, -1))
    over = np.flatnonzero(depth < 0)
    end = int(at[over[0]]) if over.size else None
    limit = over[0] if over.size else len(at)
    at, what, depth = at[:limit], what[:limit], depth[:limit]
    return (at[(depth == 0) & (what == _CLOSE)] + 1).tolist(), end


def _escaped(at: NDArray[np.int64], what: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which characters stand behind an odd number of backslashes."""
    slash = what == _BACKSLASH
    behind = np.zeros(len(at), bool)
    behind[1:] = slash[:-1] & (np.diff(at) == 1)
    order = np.arange(len(at))
    first = np.maximum.accumulate(np.where(slash & ~behind, order, 0))
    run = np.zeros(len(at), np.int64)
    run[1:] = order[:-1] - first[:-1] + 1
    escaped: NDArray[np.bool_] = behind & (run % 2 == 1) & ~slash
    return escaped


# Text of one decode: larger ones are slower and take more memory.
BATCH = 1 << 20
# An event, or what precedes the events, is refused beyond this.
_LARGEST = 64 << 20
# What follows the events is small; more of it is left out.
_TAIL = 1 << 20
_EVENTS = regex(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = regex(rb'\}\s*(,)\s*\{\s*"')
_NO_NUMBER = regex(rb":\s*[-+]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
# What a decoder raises for text that is no event, or one of too many brackets.
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_NEXT = "give a trace of torch.profiler (export_chrome_trace), as JSON or JSON in gzip"


class TraceReader:
    """Reads `{"traceEvents": [...], ...}` or `[...]`, each event as an `Event`.

    After the iteration over `batches`: `metadata` holds what else is in the object, `truncated` says
    that the text ends before the trace does, `unreadable` counts things that are no event.
    Raises GpudebugError if the text is no trace.
    """

    def __init__(self, chunks: Iterable[bytes], batch: int = BATCH) -> None:
        self.metadata: dict[str, Any] = {}
        self.truncated = False
        self.unreadable = 0
        self.notes: list[str] = []
        self._inflate = Inflate(chunks)
        self._chunks = iter(self._inflate)
        self._decode = msgspec.json.Decoder(list[Event]).decode
        self._batch = batch
        self._buffer = bytearray()
        self._over = False
        self._bare = False
        self._guessing = True

    def batches(self) -> Iterator[list[Event]]:
        """Yield all events in the order of the text."""
        self._open()
        wanted = self._batch
        end: int | None = None
        while end is None:
            self._fill(wanted)
            before = len(self._buffer)
            guessed = None if self._over or not self._guessing else self._guessed()
            if guessed is not None:
                yield guessed
            else:
                events, end = self._scanned()
                yield events
            if self._over:
                break
            # No event ends in the buffer: it is longer than that.
            wanted = self._batch if len(self._buffer) < before else 2 * before
            if wanted > 2 * _LARGEST:
                raise GpudebugError(f"has an event of more than {_LARGEST >> 20} MB", next=_NEXT)
        self._close(end)

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size and not self._over:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._over = True
                self.truncated |= self._inflate.broken
            else:
                self._buffer += chunk

    def _open(self) -> None:
        """Drop all up to the first event."""
        self._fill(len(_BOM))
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        while not self._buffer.strip(_BLANK) and not self._over:
            self._buffer.clear()
            self._fill(1)
        if not self._buffer.strip(_BLANK):
            raise self._refused("is empty")
        start = self._buffer.lstrip(_BLANK)[:1]
        if start == b"[":
            self._bare = True
            del self._buffer[: self._buffer.index(b"[") + 1]
        elif start == b"{":
            self._head()
        else:
            raise self._refused("is not a trace: it is neither a JSON object nor an array")

    def _head(self) -> None:
        size = 0
        while (found := _EVENTS.search(self._buffer, max(0, size - 4096))) is None:
            size = len(self._buffer)
            if self._over or size > _LARGEST:
                raise self._refused("is not a trace: no traceEvents in it")
            self._fill(size + self._batch)
        self._learn(bytes(self._buffer[: found.start()]) + b'"traceEvents":[]}')
        del self._buffer[: found.end()]

    def _refused(self, why: str) -> GpudebugError:
        """No trace, or one of which too little came out of its gzip stream to tell."""
        damaged = "is cut off or damaged before its first event"
        return GpudebugError(damaged if self._inflate.broken else why, next=_NEXT)

    def _learn(self, text: bytes) -> bool:
        try:
            fields = msgspec.json.decode(text, type=dict[str, Any])
        except _BROKEN:
            return False
        self.metadata.update({key: value for key, value in fields.items() if key != "traceEvents"})
        return True

    def _guessed(self) -> list[Event] | None:
        """Events up to what looks like the last boundary; a decode that succeeds proves that it is one."""
        boundary = self._boundary()
        if boundary is None:
            return None
        try:
            events = self._decode(self._array(boundary))
        except _BROKEN:
            # Braces in a string, a nested list of objects, the end of the events: the scan knows.
            return None
        del self._buffer[: boundary + 1]
        return events

    def _boundary(self) -> int | None:
        """Offset of the comma between the last two things that look like events."""
        size = len(self._buffer)
        for back in (4096, 1 << 16, size):
            found = [match.start(1) for match in _BETWEEN.finditer(self._buffer, max(0, size - back))]
            if found:
                return found[-1]
            if back >= size:
                break
        return None

    def _array(self, end: int) -> bytes:
        with memoryview(self._buffer) as view:
            return b"".join((b"[", bytes(view[:end]).lstrip(b", \t\r\n"), b"]"))

    def _scanned(self) -> tuple[list[Event], int | None]:
        ends, end = objects(self._buffer)
        if not ends:
            return [], end
        try:
            events = self._decode(self._array(ends[-1]))
        except _BROKEN:
            events = list(self._one_by_one(ends))
        else:
            # The guess was wrong where the scan was right: it will be again.
            self._guessing = self._guessing and (self._over or end is not None)
        del self._buffer[: ends[-1]]
        return events, None if end is None else end - ends[-1]

    def _one_by_one(self, ends: list[int]) -> Iterator[Event]:
        """Yield the events of a batch in which at least one is broken."""
        start = 0
        for end in ends:
            text = bytes(self._buffer[start:end]).lstrip(b", \t\r\n")
            start = end
            event = self._one(text)
            if event is None:
                self.unreadable += 1
            else:
                yield event

    def _one(self, text: bytes) -> Event | None:
        """One event; not-a-number is read as null, numbers in quotes as numbers, broken UTF-8 as U+FFFD."""
        whole = text.decode("utf-8", "replace").encode()
        for candidate in (text, whole, _NO_NUMBER.sub(b":null", whole)):
            try:
                return msgspec.json.decode(candidate, type=Event, strict=False)
            except _BROKEN:
                continue
        return None

    def _close(self, end: int | None) -> None:
        """Read what follows the events: more metadata, or nothing if the writer was killed."""
        if end is None:
            left = self._buffer.strip(b", \t\r\n")
            # A bare array may end without its bracket: the format's own rule.
            self.truncated |= bool(left) or not self._bare
            return
        del self._buffer[: end + 1]
        self._fill(_TAIL)
        rest = bytes(self._buffer).strip(_BLANK)
        if self._bare or rest == b"}":
            return
        if not (self._over and self._learn(b"{" + rest.lstrip(b", \t\r\n"))):
            self.truncated |= self._over
