"""Lines that quote source code, as tracebacks and warnings do: the numbers in them were never measured.

Read are the forms of CPython (traceback, warnings), of rich's boxes and of IPython's numbered listings.
Lines are taken as skeletons, so that a head with a clock or a rank is one head.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_HEADS = 32
SOURCES = 16
"""Lines below one frame: source over several lines and its markers."""

STRAYS = 4
"""Lines of another process that may stand between a frame and its source."""

LISTING = 1000
DEEPER = 2
"""Columns by which source is right of its frame or its warning."""

_PLACE = re.compile(rb'", line 0+(?:, in .*)?$')
"""Where source follows; a dump of the interpreter's own (`line 3 in f`) has none."""

_RAISED = re.compile(rb"[A-Za-z_][\w.]{0,120}(?:: |:?$)")
_WARNING = re.compile(rb"\.py:0+: \w*Warning: ")
_CODE = re.compile(rb"\(|[\w\])] [-+*/|&]?= ")
_NUMBERED = re.compile(rb"(?:-+> ?|\s*)0+(?:\s|$)")
_NAME = re.compile(rb"\s*[A-Za-z_][\w.]{0,120}\s{2,}$")
_SIDE = re.compile(rb"[^|\xe2%]{0,80}(?:\xe2\x94[\x82\x83]|\|)")
_CORNER = b"\xe2\x95\xad"


@dataclass(slots=True)
class _Frame:
    indent: int
    sources: int = SOURCES
    strays: int = STRAYS


class SourceLines:
    """Follows the tracebacks of a log, those of several ranks at once, in bounded memory."""

    def __init__(self) -> None:
        self._frames: dict[bytes, _Frame] = {}
        self._warned: bytes | None = None
        self._box = 0
        self._listing = 0

    def traceback(self, before: bytes, segment: bytes) -> None:
        """Takes in a traceback's first line; `before` is what it prints ahead of the word itself."""
        if _CORNER in segment or before.lstrip()[:2] == b"+-":
            self._box = STRAYS
        elif _NAME.match(before):
            self._listing = LISTING

    def quotes(self, line: bytes, segment: bytes) -> bool:
        """Tell whether a line is a frame, source or a marker; `segment` is the line as it came."""
        warned, self._warned = self._warned, None
        if b'File "' in line and self._frame(line):
            return True
        if self._frames and self._source(line):
            return True
        if self._box and self._boxed(segment):
            return True
        if self._listing and self._listed(line):
            return True
        if warned is not None and _below(line, warned):
            return True
        if b"Warning: " in line:
            self._warned = _warning_head(line)
        return False

    def _frame(self, line: bytes) -> bool:
        at = line.find(b'File "')
        end = line.find(b'", line 0', at)
        if end < 0:
            return False
        head = line[:at].rstrip(b" >")
        if _PLACE.match(line, end):
            if len(self._frames) >= MAX_HEADS:
                self._frames.clear()
            self._frames[head] = _Frame(at - len(head))
        return True

    def _source(self, line: bytes) -> bool:
        head = max((head for head in self._frames if line.startswith(head)), key=len, default=None)
        if head is None:
            return False
        frame = self._frames[head]
        body = line[len(head) :].lstrip()
        depth = len(line) - len(head) - len(body)
        if depth > frame.indent:
            if frame.sources and (frame.strays == STRAYS or depth == frame.indent + DEEPER):
                frame.sources -= 1
                return True
            return False
        frame.strays -= 1
        if not frame.strays or _RAISED.match(body):
            del self._frames[head]
        return False

    def _boxed(self, segment: bytes) -> bool:
        if _SIDE.match(segment):
            return True
        self._box = 0 if b"\xe2\x95\xb0" in segment or b"+-" in segment else self._box - 1
        return False

    def _listed(self, line: bytes) -> bool:
        self._listing -= 1
        if _NUMBERED.match(line):
            return True
        if _RAISED.match(line):
            self._listing = 0
        return False


def _warning_head(line: bytes) -> bytes | None:
    """Return the text before the path of a warning's file; None if the line is not a Python warning."""
    at = line.find(b".py:0")
    if at < 0 or not _WARNING.match(line, at):
        return None
    return line[: max(line.rfind(sign, 0, at) for sign in (b" ", b":", b"]")) + 1]


def _below(line: bytes, head: bytes) -> bool:
    """Tell whether a line is the source that a warning quotes: two columns in, and like code."""
    body = line[len(head) :]
    return (
        line.startswith(head) and len(body) - len(body.lstrip()) == DEEPER and _CODE.search(body) is not None
    )
