"""samples.csv: appended to by one process, counted as it is written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from gpudebug.core.samples.row import HEADER, parse_row
from gpudebug.edges import opener


class Changed(Exception):
    """samples.csv is no longer what was counted: another program wrote to it."""


class CsvFile:
    """samples.csv, one write a tick: a kill leaves whole rows and at most one torn one at the end.

    It keeps a digest of all that it wrote, to tell later whether another program changed it.
    """

    def __init__(self, path: Path, resume: bool, counted: dict[str, Any] | None = None) -> None:
        self._fd = _open_regular(path, resume)
        if counted is not None:
            self._cut_uncounted(int(counted["bytes"]))
        self._length = self._cut_torn_row()
        self._digest = self._read_digest()
        if counted is not None and self.counted() != counted:
            raise Changed
        self.last_elapsed: float | None = None
        self.problem: str | None = None
        if self._length == 0:
            self._write(HEADER.encode())
        elif resume:
            self.last_elapsed = self._read_last()

    def counted(self) -> dict[str, int | str]:
        """Length and digest of all that was written, by this sampler and the one that it resumed."""
        return {"bytes": self._length, "sha256": self._digest.hexdigest()}

    def append(self, rows: str) -> bool:
        """Write the rows; False if the disk refuses them, with nothing of them left behind."""
        try:
            self._write(rows.encode())
        except OSError as error:
            self.problem = error.strerror
            os.ftruncate(self._fd, self._length)
            return False
        return True

    def close(self) -> None:
        os.fsync(self._fd)
        os.close(self._fd)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        self._length += len(data)
        self._digest.update(data)

    def _cut_uncounted(self, whole: int) -> None:
        """A row that its writer had no time to count is given up: it could be anybody's."""
        if os.fstat(self._fd).st_size > whole:
            os.ftruncate(self._fd, whole)

    def _cut_torn_row(self) -> int:
        size = os.fstat(self._fd).st_size
        tail = os.pread(self._fd, 4096, max(0, size - 4096))
        whole = size - len(tail) + tail.rfind(b"\n") + 1
        if whole < size:
            os.ftruncate(self._fd, whole)
        return whole

    def _read_digest(self) -> Any:
        found, at = hashlib.sha256(), 0
        while data := os.pread(self._fd, min(1 << 20, self._length - at), at):
            found.update(data)
            at += len(data)
        return found

    def _read_last(self) -> float | None:
        tail = os.pread(self._fd, 4096, max(0, self._length - 4096)).decode("utf-8", "replace")
        last = parse_row(tail.splitlines()[-1])
        return last.elapsed if last else None


def _open_regular(path: Path, resume: bool) -> int:
    """Return the file to append to. One that is resumed lies where a training may have put another thing."""
    try:
        fd = opener.descriptor(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, follow=not resume)
    except opener.NotRegular:
        if resume:
            raise Changed from None
        raise
    if not resume:
        os.ftruncate(fd, 0)
    return fd
