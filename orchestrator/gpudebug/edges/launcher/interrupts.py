"""Ctrl-C, and a time-out's SIGTERM, counted instead of raised: neither may tear a launch at a random line."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_COUNTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """`count` presses so far; `fd` becomes readable at each one. None if they cannot be counted."""

    def __init__(self, fd: int | None = None) -> None:
        self.count = 0
        self.fd = fd


@contextlib.contextmanager
def counting_interrupts() -> Iterator[Interrupts]:
    """Counts SIGINT, SIGTERM and SIGHUP until the end of the block.

    Only the main thread can; what is ignored stays ignored.
    """
    counted = [n for n in _COUNTED if signal.getsignal(n) is not signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread() or not counted:
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

    previous = {number: signal.signal(number, count) for number in counted}
    try:
        yield interrupts
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
