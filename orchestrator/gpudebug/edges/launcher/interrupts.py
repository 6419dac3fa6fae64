"""Ctrl-C counted instead of raised, so that it cannot tear a launch at a random line."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """`count` presses so far; `fd` becomes readable at each one. None where they cannot be counted."""

    def __init__(self, fd: int | None = None) -> None:
        self.count = 0
        self.fd = fd


@contextlib.contextmanager
def counting_interrupts() -> Iterator[Interrupts]:
    """Counts SIGINT until the end of the block. Only the main thread can; an ignored SIGINT stays ignored."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield Interrupts()
        return
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    interrupts = Interrupts(read)

    def count(_number: int, _frame: FrameType | None) -> None:
        interrupts.count += 1
        with contextlib.suppress(BlockingIOError):  # thousands of presses unread: one byte is enough
            os.write(write, b"!")

    previous = signal.signal(signal.SIGINT, count)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous)
        os.close(read)
        os.close(write)
