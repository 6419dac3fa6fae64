"""Where the thread that trains is, and whether it runs there: samples of its call stack.

A thread of our own looks twenty times a second at the stack of the thread that trains, from the first batch,
optimizer step or module's forward on: a program that only infers is seen, too. In loader workers one looks
at the thread that loads. What was seen is reported in lines of kind `stacks`, each of what was new since the
one before: a stack with its phase, the user's line in it, the seconds that it stood for, those of them that
the thread used a CPU, and how often it was seen.

Approximations: the time since the sample before counts for the stack that is seen; how much of it the thread
ran is shown by its CPU clock since then, with what the kernel says it was ready and others had the CPU, if
that is nearly all or nearly nothing, else in the millisecond after the sample, and of all stacks together it
is what these two say. Python's lock is handed to us where the thread lets go of it, at the latest
after Python's switch interval, 5 ms: Python code that runs for less than that is found in the call that lets
go of the lock, often in the same function. Where no other thread of Python's is at work the interval is set
to half a millisecond, which is not felt elsewhere. Above some dozens of threads it is left alone, and one
looks more rarely, so that looking takes about a hundredth of a CPU at most. Of several training processes
each is looked at, and others than rank 0 report more rarely (as far as RANK or torch.distributed shows); of
each of rank 0's loaders the first four workers. Programs without PyTorch: see `lone`.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident, get_native_id
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from . import lone
from .calls import replace, shared
from .frames import Frames
from .record import RecordFile
from .recorder import OTHER_RANKS, Recorder, at_end
from .sampler import StackSampler, tell_why
from .threads import hindered

WORKERS = 4


def install(torch: Any, recorder: Recorder) -> None:
    """Look at the stacks of this process once it trains or infers, and of those of its loader workers."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    lock_held = getattr(sys, "_is_gil_enabled", lambda: True)()
    # Without Python's lock a stack changes while one looks at it.
    if clock_of is None or not lock_held:
        return
    calls = shared(torch, recorder)
    watcher = _Watcher(torch, recorder, clock_of, lambda: calls.evaluating, lambda: calls.acting)
    recorder.met = lone.met
    recorder.on_begin(watcher.seen)
    recorder.on_call(watcher.seen)
    recorder.on_step(watcher.stepped)
    recorder.on_end(watcher.end)
    # No other thread may be there while a process forks: the child would lack it, and Python warns of it.
    os.register_at_fork(before=watcher.pause, after_in_parent=watcher.resume, after_in_child=watcher.anew)
    module = import_module("torch.utils.data._utils.worker")
    replace(torch, module, "_worker_loop", lambda original: _looping(original, watcher))


def _looping(original: Callable[..., Any], watcher: _Watcher) -> Callable[..., Any]:
    code = getattr(original, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    place = names.index("worker_id") if "worker_id" in names else None

    def _worker_loop(*args: Any, **kwargs: Any) -> Any:
        worker = kwargs.get("worker_id", args[place] if place is not None and place < len(args) else None)
        if isinstance(worker, int) and worker < WORKERS:
            watcher.seen("workers")
        else:
            watcher.end()
        try:
            return original(*args, **kwargs)
        finally:
            watcher.end()

    return _worker_loop


class _Watcher:
    """Of one process: which thread is looked at, and the sampler that does."""

    def __init__(
        self,
        torch: Any,
        recorder: Recorder,
        clock_of: Callable[[int], int],
        evaluating: Callable[[], bool] = bool,
        acting: Callable[[], bool] = bool,
    ) -> None:
        self._torch = torch
        self._without_gradients = evaluating, acting
        self._recorder = recorder
        self._clock_of = clock_of
        self._sampler: StackSampler | None = None
        self._over = False

    def anew(self) -> None:
        """Nothing is looked at: a forked child has no sampler until it trains or infers itself."""
        if self._sampler is not None:
            self._sampler.leave()
        self._sampler = None
        self._over = False

    def seen(self, of: str = "training") -> None:
        """This thread trains, infers or loads. What fails here switches nothing else off."""
        if self._over or (self._recorder.refused and of == "training"):
            return
        lone.leave()
        try:
            # It may be known only now: from when the processes of a training have found each other.
            other = bool(self._recorder.ranks()["rank"])
            if other and of == "workers":
                self.end()
                return
            why = hindered() if self._sampler is None else None
            if why is not None:
                self._over = True
                if of == "training":
                    tell_why(RecordFile(self._recorder.run), of, why)
                return
            target = (get_ident(), self._clock_of(get_ident()), get_native_id())
            if self._sampler is not None:
                self._sampler.target = target
                self._sampler.rare = OTHER_RANKS // 2 if other else 1
                self._sampler.record.others = other
                if self._sampler.late:
                    self._start(self._sampler)
                return
            record, frames = RecordFile(self._recorder.run), Frames(self._torch, *self._without_gradients)
            self._sampler = StackSampler(of, record, frames, self._recorder.listen)
            self._sampler.target = target
            self._sampler.rare = OTHER_RANKS // 2 if other else 1
            record.others = other
            at_end(self.end)
            self._start(self._sampler)
        except Exception:  # noqa: BLE001 - no thread can be started, no clock: there are no stacks
            self._over = True

    def _start(self, sampler: StackSampler) -> None:
        sampler.start()
        if sampler.late:
            # The next call of a module, or step, tries again.
            self._recorder.listen()

    def stepped(self, _steps: int) -> None:
        sampler = self._sampler
        if sampler is None or sampler.late or sampler.target[0] != get_ident():
            self.seen()

    def pause(self) -> None:
        """This thread forks. What that takes is its own time, in the stack that it forks in."""
        sampler = self._sampler
        if sampler is not None and not self._over:
            # What is raised around a fork is printed.
            with suppress(Exception):
                if sampler.stop() and get_ident() == sampler.target[0]:
                    sampler.mark(sys._getframe(1))

    def resume(self) -> None:
        sampler = self._sampler
        if sampler is not None and not self._over:
            with suppress(Exception):
                sampler.measure()
                self._start(sampler)

    def end(self) -> None:
        """Tell what is left; never again in this process."""
        sampler, over = self._sampler, self._over
        self._over = True
        if sampler is not None and not over and sampler.record.pid == os.getpid():
            sampler.finish()
