"""Bytes as they arrive -> drawn segments with their times; control sequences out; numbers and time stamps in.

A segment is what is between two line ends, carriage returns, runs of backspaces or cursor moves:
one redraw of a progress bar is one segment, as is one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

from gpudebug.core.lazy import regex

Span = tuple[int, int]

HEAD = TAIL = 32 * 1024
SEAM = b" ~ "
"""Marks where the middle of an overlong segment was dropped."""

SCAN_HALF = 2048
"""Of a segment longer than twice this only the two ends are read."""

_ESCAPE_LIMIT = 16
_SEPARATOR = regex(rb"[\r\n]|\x08+|\x1b\[[0-9;]{0,8}[A-HJf]|\x1b\[2K")
_CONTROL = regex(rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])|\x1b")
_COPIED = regex(
    rb"(?:\^\[|\\x1[bB]|\\0?33|\\e|\xe2\x90\x9b)?\[(?:0|[1-4]|7|22|24|[34]9|[34][0-7]|9[0-7]"
    rb"|[34]8;5;\d{1,3}|[34]8;2(?:;\d{1,3}){3})(?:;\d{1,2}){0,3}m(?! ?\d+ ?[smh]\b)"
)
"""A colour that lost its escape character, or that a pager wrote out: `[31mstep: 5`."""

_LIKE_COLOUR = regex(rb"\[[\d;]{1,30}m")
_DROPPED = bytes([*range(0x09), *range(0x0A, 0x20), *range(0x7F, 0x100)])
_ZEROED = bytes(0x30 if 0x31 <= b <= 0x39 else b for b in range(256))
_UNPRINTABLE = regex(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")

NUMBER = regex(
    r"(?<![\w@.])(?P<value>[+-]?(?:0{1,3}(?:,000)+(?!0)(?:\.0+)?|0+(?:\.0*)?|\.0+)(?:[eE][+-]?0+)?(?!\.?0|,000)"
    r"|[+-]?(?:[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF)(?:\.0)?(?![A-Za-z]))"
    r"(?P<unit>%|/s\b|[A-Za-z]+(?:/[A-Za-z]+)*|"
    r" ?(?:it|its|iters?|iterations?|steps?|batch|batches)/s(?:ec|econd)?\b|"
    r" (?:ms|us|s|secs?|seconds?)(?:/(?:it|iter|iteration|step|batch))?\b)?(?![\w@])(?!\.0)"
)

_SUFFIX = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


class Splitter:
    """Cuts a byte stream into segments in bounded memory, the same ones however the stream is chunked.

    Of a segment longer than 64 KiB the first and the last 32 KiB are kept.
    """

    def __init__(self) -> None:
        self._head: bytes | None = None
        self._pending = b""
        self._pending_time: float | None = None

    def push(self, data: bytes, time: float | None) -> Iterator[tuple[bytes, float | None]]:
        """Yields (segment, time); the time is that of the chunk that brought the segment's last byte."""
        held = len(self._pending)
        *ended, rest = _cut(self._pending + data, held)
        for segment in ended:
            at, held = self._pending_time if len(segment) <= held else time, -1
            if self._head or len(segment) > HEAD + TAIL:
                yield self._whole(segment), at
            elif segment:
                yield segment, at
            self._head = None
        if len(rest) > HEAD + TAIL:
            self._head = self._head or rest[:HEAD]
            rest = rest[-TAIL:]
        elif self._head:
            rest = rest[-TAIL:]
        if data:
            self._pending_time = time
        self._pending = rest

    def pending(self) -> tuple[bytes, float | None]:
        """Return the segment that has not ended yet, empty if there is none."""
        if not self._pending and not self._head:
            return b"", None
        return self._whole(self._pending), self._pending_time

    def _whole(self, end: bytes) -> bytes:
        if self._head:
            return self._head + SEAM + end[-TAIL:]
        if len(end) > HEAD + TAIL:
            return end[:HEAD] + SEAM + end[-TAIL:]
        return end


def _cut(text: bytes, held: int) -> list[bytes]:
    """Return what is between the separators; of what was `held` none but one that was cut ends before it."""
    if b"\x1b" not in text and b"\x08" not in text:
        return text.replace(b"\r", b"\n").split(b"\n")
    segments, at = [], 0
    for match in _SEPARATOR.finditer(text, max(0, held - _ESCAPE_LIMIT)):
        segments.append(text[at : match.start()])
        at = match.end()
    return [*segments, text[at:]]


def plain(segment: bytes) -> bytes:
    """Printable ASCII of a segment: no control sequences, no bar blocks; a micro sign becomes `u`."""
    if len(segment) > 4 * SCAN_HALF:
        segment = segment[: 2 * SCAN_HALF] + SEAM + segment[-2 * SCAN_HALF :]
    if b"\x1b" in segment:
        segment = _CONTROL.sub(b"", segment)
    segment = without_copied_colours(segment)
    if b"\xb5" in segment or b"\xce\xbc" in segment:
        segment = segment.replace(b"\xc2\xb5", b"u").replace(b"\xce\xbc", b"u")
    segment = segment.translate(None, _DROPPED)
    if len(segment) > 2 * SCAN_HALF:
        segment = segment[:SCAN_HALF] + SEAM + segment[-SCAN_HALF:]
    return segment


def without_copied_colours(segment: bytes) -> bytes:
    """Takes out colours that were copied as text; a line with one alone may tell of minutes (`[30m`)."""
    if b"m" not in segment or not _LIKE_COLOUR.search(segment) or len(_COPIED.findall(segment)) < 2:
        return segment
    return _COPIED.sub(b"", segment)


def skeleton(text: bytes) -> bytes:
    """`text` with every digit as 0: what lines of one kind have in common."""
    return text.translate(_ZEROED)


def readable(segment: bytes, limit: int) -> str:
    """Return a segment for people: UTF-8, no control or direction characters, at most `limit` characters."""
    text = without_copied_colours(_CONTROL.sub(b"", segment[: 8 * limit])).decode("utf-8", "replace")
    text = _UNPRINTABLE.sub("", text).rstrip()
    return text if len(text) <= limit else text[: limit - 3] + "..."


LARGEST, SMALLEST = 1e100, 1e-100


def measured(value: float) -> float:
    """Return a number that can be squared and summed: beyond 1e100 it is infinite, below 1e-100 it is 0."""
    if SMALLEST < value < LARGEST:
        return value
    size = abs(value)
    if size > LARGEST:
        return inf if value > 0 else -inf
    return 0.0 if size < SMALLEST else value


def as_number(text: object) -> float | None:
    """The number that a value is or spells; None of any other, and of a whole one too large for a float."""
    if isinstance(text, bool) or not isinstance(text, (int, float, str)):
        return None
    try:
        return measured(float(text))
    except (ValueError, OverflowError):
        return None


def number(text: bytes | str) -> float | None:
    """Return a printed number: `1,234`, `1e-3`, `nan.0`, `-inf`, `1K`; None if it is not a number."""
    try:
        value = float(text)
        return value if SMALLEST < value < LARGEST else measured(value)
    except ValueError:
        word = (text.decode("ascii", "replace") if isinstance(text, bytes) else text).strip().lower()
    if word[-2:] == ".0" and word.strip("+-")[:3] in ("nan", "inf"):
        return nan if "nan" in word else -inf if word[0] == "-" else inf
    scale = _SUFFIX.get(word[-1:], 1.0)
    try:
        return measured(float((word[:-1] if scale != 1.0 else word).replace(",", "")) * scale)
    except ValueError:
        return None


def total(text: bytes) -> float | None:
    """Return a printed number, of several in brackets, one a term, their sum; None if one is none."""
    if b" " not in text:
        return number(text)
    terms = [number(term.strip(b",")) for term in text.strip(b"[]").split()]
    return None if None in terms else sum(term for term in terms if term is not None)


def last_digit(printed: str) -> float:
    """Return what a number's last printed digit is worth; 0 with an exponent, which shows digits enough."""
    return 0.0 if "e" in printed.lower() else 10.0 ** -len(printed.partition(".")[2])


def clock(text: bytes) -> float:
    """Seconds of `M:SS` or `H:MM:SS`, with fractions."""
    seconds = 0.0
    for part in text.rpartition(b" ")[2].split(b":"):
        seconds = seconds * 60 + float(part)
    return seconds


_TIME = regex(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?")
_FULL = regex(
    r"(\d{4})[-/.](\d\d)[-/.](\d\d)|(\d\d)/(\d\d)/(\d{4})|(\d\d)/(\d\d)/(\d\d)(?!\d)|(\d\d)[-/](\d\d)"
)
DAY = 86400.0


def stamp_seconds(text: str) -> float | None:
    """Seconds of a stamp on a scale of its own: only differences between stamps of one log mean anything.

    A date of two digits each may have any order: its day counts alike in each, and goes back as a month ends.
    """
    clock = _TIME.search(text)
    if clock is None:
        return None
    seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3]) + float(f"0.{clock[4] or 0}")
    date = _FULL.search(text)
    if date is None:
        return seconds
    parts = [int(part) for part in date.groups() if part is not None]
    if date[7]:
        return sum(parts) * DAY + seconds
    year, month, day = parts if date[1] else (parts[2], *parts[:2]) if date[4] else (1, *parts)
    year, month = (year - 1, month + 12) if month < 3 else (year, month)  # Years from March on.
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day
    return days * DAY + seconds
