"""Files that grow while they are looked at: each look reads what is new, of much its end only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.progress.sanitise import visible
from gpudebug.edges import opener

_LAST_BYTES = 4096
_OURS = ("gpudebug: ", "slurmstepd: error: ")


class News(NamedTuple):
    """What was appended since the last look; `torn` where something before it was left out."""

    data: bytes
    torn: bool = False


class Growing:
    """A file at `path`, of which a look reads at most `limit` bytes, its last ones.

    One that is shorter than it was is read again; one that is missing or unreadable, has no news.
    `size` is its size in bytes and `changed` the time of its last change in seconds since 1970, as of the
    last look; None before it was there.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.limit = limit
        self.size: int | None = None
        self.changed: float | None = None
        self._at = 0

    def news(self) -> News:
        try:
            with opener.opened(self.path) as file:
                return self._read(file.fileno())
        except OSError:
            return News(b"")

    def _read(self, fd: int) -> News:
        facts = os.fstat(fd)
        self.size, self.changed = facts.st_size, facts.st_mtime
        shrunk = facts.st_size < self._at
        begin = 0 if shrunk else self._at
        start = max(begin, facts.st_size - self.limit)
        data = os.pread(fd, facts.st_size - start, start)
        self._at = start + len(data)
        return News(data, torn=shrunk or start > begin)


def last_line(path: Path) -> str:
    """The line of a worker's log that says how it ended, as it may be shown; empty if it cannot be read.

    The last one of gpudebug, of slurmstepd, or that names an exception; else the last line: a site's epilog
    may append its own.
    """
    if path.is_symlink():
        return ""
    lines = Growing(path, _LAST_BYTES).news().data.decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.strip()]
    telling = next(_telling(said), said[-1] if said else "")
    return visible(telling.strip()).removeprefix("gpudebug: ")


def _telling(lines: Sequence[str]) -> Iterator[str]:
    """Lines of which it is known whose they are, the last one first."""
    found, raised = [], False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            raised = True
        elif raised and not line[0].isspace():
            raised = False
            found.append(line)
        elif line.startswith(_OURS):
            found.append(line)
    return reversed(found)
