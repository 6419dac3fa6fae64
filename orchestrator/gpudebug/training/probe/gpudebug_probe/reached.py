"""How much of what the model is given reaches a parameter: a few forwards, looked at module by module.

A module with parameters of its own reads what it is given without a gradient, unless modules inside of it
do. What a program loads and drops before any of them, such as all frames but the last, reaches none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .batches import elements
from .recorder import RARE, Recorder

# Forwards are looked at after so many first beats, then after every RARE-th, and no more than MOST in all.
FIRST = 4
MOST = 50


class Reached:
    """`thread` is the one in whose forward each module is looked at; None outside of such forwards."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._anew()
        recorder.on_begin(self._anew)
        recorder.before_beat(self._beat)

    def _anew(self) -> None:
        self.thread: int | None = None
        self._due = True
        self._beats = self._looks = self._given = self._reached = 0
        # Of each module that is being called what has reached parameters inside of it.
        self._inside: list[int] = []

    def _beat(self) -> None:
        self._beats += 1
        self._due = self._looks < MOST and (self._beats <= FIRST or self._beats % RARE == 0)
        if self._looks:
            given, reached = self._given / self._looks, self._reached / self._looks
            self._recorder.facts["input"] = {"looks": self._looks, "given": given, "reached": reached}

    def begin(self, thread: int) -> bool:
        """Whether this forward is looked at; the next call of `through` in it is the outermost module's."""
        if not self._due:
            return False
        self.thread, self._due = thread, False
        self._inside.clear()
        return True

    def through(self, thread: int, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        """Call a module, and count what reaches parameters in it if its forward is looked at."""
        if thread != self.thread:
            return original(module, *args, **kwargs)
        given = elements(self._torch, (args, kwargs)) if not self._inside or _owns(module) else 0
        read = given if _owns(module) else 0
        self._inside.append(0)
        done = False
        try:
            result = original(module, *args, **kwargs)
            done = True
            return result
        finally:
            read = self._inside.pop() or read
            if self._inside:
                self._inside[-1] += read
            else:
                self._end(given, read, done)

    def _end(self, given: int, read: int, done: bool) -> None:
        self.thread = None
        if done:
            self._looks += 1
            self._given += given
            self._reached += read


def _owns(module: Any) -> bool:
    """Tell whether a module has parameters of its own, trained or not."""
    try:
        return any(one is not None for one in module.__dict__["_parameters"].values())
    except Exception:  # noqa: BLE001 - a module of another make
        return False
