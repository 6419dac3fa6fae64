"""The job's output file: opened by the warden, written by the job itself, only ever measured."""

from __future__ import annotations

import errno
import os
import stat

from .spawn import raw


def open_log(path: str) -> int:
    """Return the log for appending, mode 0600 when new; raises OSError also for what is no regular file."""
    # O_NONBLOCK: opening a FIFO without a reader fails instead of blocking for ever.
    fd = os.open(raw(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    os.set_blocking(fd, True)
    return fd


class JobLog:
    """`grown` counts bytes ever added: a job that truncates its log earns no new allowance."""

    def __init__(self, path: str) -> None:
        self.fd = open_log(path)
        self._size = os.fstat(self.fd).st_size
        self.grown = 0

    def measure(self) -> int:
        size = os.fstat(self.fd).st_size
        self.grown += max(0, size - self._size)
        self._size = size
        return self.grown
