"""Ctrl-C, and a time-out's SIGTERM, counted instead of raised: neither may tear a launch at a random line."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

_COUNTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_LATE_S = 1.0
_sources: list[Callable[[], str]] = []


@contextlib.contextmanager
def naming_interrupts(source: Callable[[], str]) -> Iterator[None]:
    """Let `source` say where interrupts come from, until the end of the block: no keyboard, say."""
    _sources.append(source)
    try:
        yield
    finally:
        _sources.pop()


def origin() -> str:
    """Return where the last interrupt came from, in words that follow `interrupted`."""
    return _sources[-1]() if _sources else "from the keyboard"


class Interrupts:
    """`count` presses so far, `last` the newest one's signal; `fd` becomes readable at each one. None if they
    cannot be counted."""

    def __init__(self, fd: int | None = None) -> None:
        self.count = 0
        self.last: int | None = None
        self.fd = fd

    def reached_all(self) -> bool:
        """Tell whether whoever ended the job ended us too: a scheduler signals each process, in any order."""
        if not _sources:
            return False
        deadline = time.monotonic() + _LATE_S
        while not self.count and time.monotonic() < deadline:
            time.sleep(_LATE_S / 20)
        return self.count > 0


_held: list[int] = []


@contextlib.contextmanager
def holding_interrupts() -> Iterator[Interrupts]:
    """Until the end of the block, and then until `raise_held`, interrupts do nothing: what has come of a run
    is being put together."""
    with counting_interrupts() as interrupts:
        try:
            yield interrupts
        finally:
            if interrupts.last is not None:
                _held.append(interrupts.last)


def raise_held() -> None:
    """Now do what an interrupt that was held would have done; before another run begins."""
    if _held:
        number = _held[-1]
        _held.clear()
        signal.raise_signal(number)


def forget_held() -> None:
    """What was asked to end has ended, so that a Ctrl-C which was held is no other's; a SIGTERM still is."""
    _held[:] = [number for number in _held if number != signal.SIGINT]


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

    def count(number: int, _frame: FrameType | None) -> None:
        interrupts.count += 1
        interrupts.last = number
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
