"""The lines of a progress file as Markdown shows them: comments are out, code fences are marked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.core.progress.entries import ProgressFile
from gpudebug.core.progress.fields import key_on
from gpudebug.core.progress.shapes import fold

_COMMENT = re.compile(rb"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
# What is escaped or in a code span opens no comment.
_INLINE = re.compile(rb"\\.|(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|<!--(?:-?>|.*?-->|.*)")
_LEAD = re.compile(r"(?:>\s*)*(?:#{1,6}\s+)?(?:(?:[-+•]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?", re.IGNORECASE)
_RULER = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")


class ShownLine(NamedTuple):
    """One line that is not empty: its offset in bytes, what is written there and what is read there.

    `cells` are those of a table's row, each behind its column's heading if it has one.
    """

    offset: int
    written: str
    text: str
    fenced: bool
    cells: tuple[tuple[str, str], ...]

    @property
    def keyed(self) -> tuple[str, str] | None:
        """Key and value, of a row its first cell and the rest; None without a key."""
        if self.cells:
            first, *rest = (text for _, text in self.cells)
            return key_on(f"{first}: {' '.join(rest)}".encode(), 0) if rest else None
        return key_on(self.text.encode("utf-8", "replace"), 0)


def shown_lines(document: ProgressFile, start: int, end: int) -> Iterator[ShownLine]:
    """Yield the lines between two offsets, as a reader sees them."""
    offset = start
    above: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    for raw in _without_comments(document, start, end).splitlines(keepends=True):
        begun, offset = offset, offset + len(raw)
        fence = _fence(document, begun)
        seen = raw if fence else _INLINE.sub(_uncommented, raw)
        text = fold(seen.decode("utf-8", "replace"))
        text = _LEAD.sub("", text, count=1)
        cells = _cells(text)
        if cells and _RULER.fullmatch(text):
            columns, cells = above, ()
        elif text:
            row = bool(columns and cells) or text.startswith("|")
            headed = tuple(zip((*columns, *[""] * len(cells)), cells, strict=False)) if row else ()
            written = document.data[begun:offset].decode("utf-8", "replace").strip()
            yield ShownLine(begun, written, text, fence, headed)
        columns = columns if cells or columns is above else ()
        above = cells


def _without_comments(document: ProgressFile, start: int, end: int) -> bytes:
    """Return the bytes between two offsets, blanks in the places of comments that are blocks of their own."""
    spans = document.outline.opaque
    pieces: list[bytes] = []
    position = start
    for span in spans[max(bisect_right(spans, (start, 0)) - 1, 0) : bisect_right(spans, (end, 0))]:
        begin, close = max(span[0], position), min(span[1], end)
        if document.data[begin:close].lstrip().startswith(b"<!--"):
            hidden = _COMMENT.sub(_blanked, document.data[begin:close])
            pieces += [document.data[position:begin], hidden]
            position = close
    return b"".join([*pieces, document.data[position:end]])


def _blanked(match: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", match[0])


def _fence(document: ProgressFile, offset: int) -> bool:
    spans = document.outline.opaque
    at = bisect_right(spans, (offset, len(document.data) + 1)) - 1
    if at < 0 or offset >= spans[at][1]:
        return False
    return not document.data[spans[at][0] : spans[at][1]].lstrip().startswith(b"<!--")


def _uncommented(match: re.Match[bytes]) -> bytes:
    return b"" if match[0].startswith(b"<!--") and match[0].endswith(b"-->") else match[0]


def _cells(text: str) -> tuple[str, ...]:
    if "|" not in text:
        return ()
    return tuple(cell.strip() for cell in text.strip("|").split("|"))
