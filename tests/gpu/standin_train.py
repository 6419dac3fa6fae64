"""train.py with a GPU of the stand-ins: for forward, backward and update it is busy, at least `LEAST_S`."""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Any

import train

SPANS, HEAD, SPAN = 8192, struct.Struct("=Qddi4x"), struct.Struct("=ddd")
WATTS, LEAST_S = 200.0, 0.01
"""Beyond idling, as long as it is busy; what a step takes of it."""


class Own(train.Own):
    """Writes each step into the account of the first GPU too, in the form of account.h."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with open(os.environ["GPU_ACCOUNT"], "r+b") as file:
            self.account = mmap.mmap(file.fileno(), HEAD.size + SPANS * SPAN.size)

    def stepped(self, begin: Any, end: Any) -> None:
        end = max(end, begin + LEAST_S)
        boot = time.clock_gettime(time.CLOCK_BOOTTIME) - time.perf_counter()
        spans, joules, memory, pid = HEAD.unpack_from(self.account)
        SPAN.pack_into(self.account, HEAD.size + spans % SPANS * SPAN.size, boot + begin, boot + end, WATTS)
        HEAD.pack_into(self.account, 0, spans + 1, joules + (end - begin) * WATTS, memory, pid)
        time.sleep(max(0.0, end - time.perf_counter()))
        super().stepped(begin, end)


if __name__ == "__main__":
    train.Own = Own  # type: ignore[misc]
    train.main()
