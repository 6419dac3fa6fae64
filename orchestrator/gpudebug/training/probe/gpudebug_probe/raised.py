"""Gives back what a signal's handler raised while the garbage collector called the probe.

Python handles a signal between two of its instructions. The collector is C, and takes long where there is
much to look at: then the first instruction behind it is that of a function that watches it, and what the
handler raises there, Ctrl-C too, goes to `sys.unraisablehook` and is over. The signal is raised once more.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

_AFTER_S = 0.001


def give_back(watcher: Callable[..., None]) -> None:
    """Raise again what is raised in `watcher`, a function that the collector calls."""
    shown = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        number = None
        if unraisable.object is watcher:
            number = _signal_of(unraisable.exc_value, unraisable.exc_traceback, watcher)
        if number is None:
            shown(unraisable)
            return
        # Another thread waits until the collector has let the main thread go on.
        _thread.start_new_thread(_raise, (number,))

    sys.unraisablehook = hook


def _raise(number: int) -> None:
    time.sleep(_AFTER_S)
    signal.raise_signal(number)


def _signal_of(raised: Any, traceback: Any, watcher: Callable[..., None]) -> int | None:
    """Return the signal whose handler raised it; None if it was none's."""
    while traceback is not None and traceback.tb_frame.f_code is not watcher.__code__:
        traceback = traceback.tb_next
    if traceback is not None and traceback.tb_next is not None:
        handler = traceback.tb_next.tb_frame
        known = signal.valid_signals()
        for name in handler.f_code.co_varnames[:2]:
            value = handler.f_locals.get(name)
            if isinstance(value, int) and value in known:
                return int(value)
    return int(signal.SIGINT) if isinstance(raised, KeyboardInterrupt) else None
