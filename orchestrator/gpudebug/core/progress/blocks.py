"""The outline of a markdown file: its headings, the spans in which no heading can stand, a formatter's marks.

Follows CommonMark 0.31 (spec.commonmark.org) for ATX headings, code fences, HTML comments and
`=` underlines. One deviation: `-` underlines make no heading, because people write `---` directly
below the last line of an entry to set entries apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.lazy import regex

# How far above a fence its list item is looked for, in lines: keeps hostile files linear.
LOOK_BACK = 100
DEEPEST_INDENT = 3
MOST_BLOCKS = 100_000
"""Headings, fences and comments together: a few bytes each in the file, and hundreds in memory."""
_TITLED = (b"hypothesis", b"baseline")

_STRUCTURE = regex(
    rb"""\n(?:
        (?P<conflict><{7}|>{7}|\|{7})(?=[ \r\n]|\Z)
      | (?P<indent>[ \t]*)(?:
            (?P<hashes>\#{1,6})(?!\#)
          | (?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})
          | (?P<comment><!--)
          | (?P<underline>=+)[ \t]*\r?(?=\n|\Z)
        )
    )""",
    re.VERBOSE,
)
_LIST_ITEM = regex(rb"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\r?\Z)")
_NO_PARAGRAPH = regex(rb" {0,3}(?:[-*+>]|\d{1,9}[.)])(?:[ \t]|\Z)|>|    |\t")
_CLOSING_HASHES = regex(rb"(?:^|[ \t]+)#+$")
_ESCAPED = regex(r"\\([!-/:-@\[-`{-~])")
_SPAN = regex(r"(?<=[\d%x]) [–—] (?=[-+\d])")
# No word of a change begins like this.
_OPTION = regex(r"(?<!\S)(?:\\-\\?-|-\\-|[–—])(?=[A-Za-z])")


class Heading(NamedTuple):
    """One heading. `start` and `end` are the byte offsets of its line or lines, `line` is 1-based."""

    start: int
    end: int
    line: int
    level: int
    text: bytes


@dataclass(slots=True)
class Outline:
    """What `outline` found. Offsets are bytes, lines 1-based.

    `opaque` holds the spans of fences and comments in order; `unclosed` is the line of one that runs
    to the end of the file, `conflict` that of the first merge-conflict marker. What is behind `beyond`, the
    line of the first block that is too many, is not looked at.
    """

    headings: list[Heading] = field(default_factory=list)
    opaque: list[tuple[int, int]] = field(default_factory=list)
    unclosed: int | None = None
    conflict: int | None = None
    beyond: int | None = None


def width(indent: bytes) -> int:
    """Columns of a run of spaces and tabs, with tab stops of 4."""
    return len(indent.expandtabs(4)) if b"\t" in indent else len(indent)


def unescaped(text: str) -> str:
    """Return a text without Markdown's backslashes in front of punctuation."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def plain(text: str) -> str:
    """Return a figure without a formatter's escapes and dashes."""
    text = unescaped(text)
    return text if text.isascii() else _SPAN.sub(" to ", text.replace("−", "-"))


def options(text: str) -> str:
    """Return a change whose options begin with two hyphens, whatever a formatter made of them."""
    return _OPTION.sub("--", text)


def outline(body: bytes) -> Outline:
    """Return the outline of `body`, whose lines end in LF or CRLF. Reads it once, front to back."""
    # With a newline in front every line begins with one, and an index into `text` is both the index
    # of a line's leading newline and the offset of the line itself in `body`.
    text = b"\n" + body
    found = Outline()
    line, counted, position, floor = 1, 0, 0, 0
    while match := _STRUCTURE.search(text, position):
        start, position = match.start(), match.end()
        line += text.count(b"\n", counted, start)
        counted = start
        if len(found.headings) + len(found.opaque) >= MOST_BLOCKS:
            found.beyond = line
            break
        kind = match.lastgroup
        if kind == "conflict":
            found.conflict = found.conflict or line
            continue
        indent = width(match["indent"])
        if kind == "hashes":
            heading = _heading(text, match, line) if indent <= DEEPEST_INDENT else None
        elif kind == "underline":
            heading = _underlined(text, match, line, floor) if indent <= DEEPEST_INDENT else None
        else:
            heading = None
            position = floor = _skip(text, match, indent, found, line)
        if heading:
            found.headings.append(heading)
            position = floor = heading.end
    return found


def _heading(text: bytes, match: re.Match[bytes], line: int) -> Heading | None:
    end = _line_end(text, match.end())
    words = text[match.end() : end]
    level = len(match["hashes"])
    glued = bool(words) and words[:1] not in b" \t\r"
    # `###Hypothesis 3` is no heading to CommonMark, yet only one thing can be meant by it.
    if glued and (level == 1 or not words.lower().startswith(_TITLED)):
        return None
    words = words.strip()
    if words.endswith(b"#"):
        words = _CLOSING_HASHES.sub(b"", words).rstrip()
    return Heading(match.start(), min(end, len(text) - 1), line, level, words)


def _underlined(text: bytes, match: re.Match[bytes], line: int, floor: int) -> Heading | None:
    """Return the paragraph above a row of `=`, if there is one and it is in no list and no quotation."""
    first, lines, end = -1, 0, match.start()
    while lines < LOOK_BACK:
        begin = text.rfind(b"\n", 0, end)
        if begin < floor or not text[begin + 1 : end].strip():
            break
        first, end, lines = begin, begin, lines + 1
    if first < 0 or _NO_PARAGRAPH.match(text, first + 1):
        return None
    words = b" ".join(text[first : match.start()].split())
    end = _line_end(text, match.end())
    return Heading(first, min(end, len(text) - 1), line - lines, 1, words)


def _skip(text: bytes, match: re.Match[bytes], indent: int, found: Outline, line: int) -> int:
    """Notes the fence or comment that opens here as opaque; returns where the outline goes on."""
    container = _list_item_above(text, match.start(), indent) if indent else 0
    if indent - container > DEEPEST_INDENT:
        return match.end()
    limit = len(text)
    opened = _line_end(text, match.end())
    if container and (outdent := _outdent(container).search(text, opened)):
        limit = outdent.start()
    if match["comment"]:
        closed = text.find(b"-->", match.end() - 2, limit)
        end = _line_end(text, closed) if closed >= 0 else limit
    else:
        closed = _fence_end(text, match["fence"], opened, limit, container + DEEPEST_INDENT)
        end = closed if closed >= 0 else limit
    found.opaque.append((match.start(), min(end, len(text) - 1)))
    if closed < 0 and limit == len(text):
        found.unclosed = line
    return end


def _fence_end(text: bytes, fence: bytes, position: int, limit: int, deepest: int) -> int:
    closer = _closer(fence[:1], len(fence))
    while match := closer.search(text, position, limit):
        if width(match[1]) <= deepest:
            return match.end()
        position = match.end()
    return -1


def _list_item_above(text: bytes, end: int, indent: int) -> int:
    """Column where the text of the innermost list item that holds a line at `indent` begins, or 0."""
    for _ in range(LOOK_BACK):
        begin = text.rfind(b"\n", 0, end)
        if begin < 0:
            return 0
        line = text[begin + 1 : end]
        if line.strip():
            item = _LIST_ITEM.match(line)
            if item and width(item[0]) <= indent:
                return width(item[0])
            if not item and line[:1] not in b" \t":
                return 0
        end = begin
    return 0


def _line_end(text: bytes, position: int) -> int:
    end = text.find(b"\n", position)
    return len(text) if end < 0 else end


@lru_cache(maxsize=64)
def _closer(mark: bytes, length: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n([ \t]*)%s{%d,}[ \t]*\r?(?=\n|\Z)" % (re.escape(mark), length))


@lru_cache(maxsize=64)
def _outdent(column: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n {0,%d}[^ \t\r\n]" % (column - 1))
