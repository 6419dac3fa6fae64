"""Running digests of files that a job appends to: what was there once must still be there at the end."""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import os
import stat
import time

from .spawn import raw

LOG = "train.log"
PROBE = "probe.jsonl"
EVERY_S = 0.25
MOST = 4 << 20
"""Bytes of a file in `EVERY_S`: a flood costs a few percent of a core, and is caught up with at the end."""
FINISH_S = 20.0
_CHUNK = 1 << 18


class Counter:
    """The digest of an open file's first `bytes` bytes, which grows with the file."""

    def __init__(self, fd: int) -> None:
        # After the launch: to load it takes milliseconds.
        import hashlib

        self.fd = fd
        self.bytes = 0
        self._digest = hashlib.sha256()

    def follow(self, most: int) -> bool:
        """Take in at most `most` bytes more; False once there are no more."""
        left = most
        while left > 0:
            data = os.pread(self.fd, min(_CHUNK, left), self.bytes)
            if not data:
                return False
            self._digest.update(data)
            self.bytes += len(data)
            left -= len(data)
        return True

    def counted(self) -> dict[str, int | str]:
        return {"bytes": self.bytes, "sha256": self._digest.hexdigest()}


class Counters:
    """The log, and the probe record in its folder once there is one.

    Both are held by descriptors: whatever a job puts in their place later is not what was counted.
    """

    def __init__(self, log: int, folder: str) -> None:
        self._log = os.open(f"/proc/self/fd/{log}", os.O_RDONLY | os.O_CLOEXEC)
        self._folder = os.open(raw(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._counters: dict[str, Counter] = {}
        self._due = 0.0

    def follow(self, now: float) -> None:
        """Take in what was written; call a few times a second."""
        if now < self._due:
            return
        self._due = now + EVERY_S
        self._open()
        for counter in self._counters.values():
            # A disk that cannot be read now shows at the end, when the files are compared.
            with contextlib.suppress(OSError):
                counter.follow(MOST)

    def finish(self, *, at_once: bool = False) -> dict[str, dict[str, int | str]]:
        """What was counted of each file; what a flood left over is taken in first, for `FINISH_S` at most."""
        until = time.monotonic() + (0.0 if at_once else FINISH_S)
        self._open()
        for counter in self._counters.values():
            with contextlib.suppress(OSError):
                while counter.follow(MOST) and time.monotonic() < until:
                    pass
        return {name: counter.counted() for name, counter in self._counters.items()}

    def _open(self) -> None:
        if LOG not in self._counters:
            self._counters[LOG] = Counter(self._log)
        if PROBE in self._counters:
            return
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(PROBE, flags, dir_fd=self._folder)
        except OSError:
            return  # Not there yet, or a link that is not followed.
        if stat.S_ISREG(os.fstat(fd).st_mode):
            self._counters[PROBE] = Counter(fd)
        else:
            os.close(fd)
