"""The main thread of a program that does not train with PyTorch: NumPy, JAX, TensorFlow, a simulator.

A thread of ours waits until the program is no short one, then looks at the stack of the main thread as
`sampler` does, and reports it as stacks of `main`. It is gone as soon as PyTorch's own watchers look (see
`stacks`). A forked child, or one of multiprocessing, is not looked at: what it does is its parent's work, of
which the stack tells.

Nothing is imported before that, so that a short program pays for one thread alone.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread

# typing would cost a Python that never trains more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Seconds until a program is no short one; from PyTorch's import on, until it will not train.
SHORT_S, WITH_TORCH_S = 1.5, 10.0
# How long the end of the process, or a fork, waits for the thread to end.
STOP_S = 0.5
# Files in which a process of multiprocessing's begins.
HELPERS = tuple(
    os.path.join("multiprocessing", n + ".py") for n in ("spawn", "forkserver", "resource_tracker")
)
# Files of PyTorch in which a process waits for the others of its training: rendezvous, collectives, the
# constructor of DDP.
MEETING = tuple(
    os.path.join("torch", *path)
    for path in (
        ("distributed", "rendezvous.py"),
        ("distributed", "distributed_c10d.py"),
        ("distributed", "utils.py"),
        ("nn", "parallel", "distributed.py"),
    )
)


def watch(run: str) -> None:
    """Look at this thread, the main one, later on."""
    global _lone  # noqa: PLW0603 - one a process
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    lock_held = getattr(sys, "_is_gil_enabled", lambda: True)()
    if clock_of is None or not lock_held or not hasattr(os, "register_at_fork"):
        return
    _lone = _Lone(run, (get_ident(), clock_of(get_ident()), get_native_id()))
    os.register_at_fork(before=_lone.pause, after_in_parent=_lone.resume, after_in_child=leave)
    _lone.resume()


def met() -> float | None:
    """Seconds, to about `SHORT_S`, that this process has waited for the others of its training before it
    began to train; None if no thread looked at it."""
    return _lone.met if _lone is not None else None


def leave() -> None:
    """Look at nothing any more in this process."""
    lone = _lone
    if lone is not None:
        lone.leave()


class _Lone:
    """The main thread of this process, and what looks at it once the program has run for long enough."""

    def __init__(self, run: str, target: tuple[int, int, int]) -> None:
        self._run = run
        self._target = target
        self._pid = os.getpid()
        self._begun = time.monotonic()
        self._sampler: Any = None
        self._over = False
        self._halt: Any = None
        self._done: Any = None
        self.met: float | None = None

    # Called in other threads

    def resume(self) -> None:
        if self._over:
            return
        try:
            if self._sampler is not None:
                self._sampler.measure()
                self._sampler.start()
                return
            self._halt, self._done = allocate_lock(), allocate_lock()
            self._halt.acquire()
            self._done.acquire()
            start_new_thread(self._wait, (self._halt, self._done))
        except BaseException:  # noqa: BLE001 - no thread can be started: there are no stacks
            self._over = True

    def pause(self) -> None:
        """This process forks, and no other thread may be there: the child would lack it."""
        if self._over:
            return
        try:
            if self._sampler is None:
                self._over = not self._stop()
            elif self._sampler.stop() and get_ident() == self._target[0]:
                self._sampler.mark(sys._getframe(1))
        except Exception:  # noqa: BLE001 - what is raised around a fork is printed
            self._over = True

    def leave(self) -> None:
        """Nothing of what was seen so far is reported that has not been."""
        if self._over:
            return
        self._over = True
        sampler, self._sampler = self._sampler, None
        if self._pid != os.getpid():
            if sampler is not None:
                sampler.leave()
        elif sampler is not None:
            sampler.stop()
        else:
            self._stop()

    def _stop(self) -> bool:
        """Tell whether the thread that waits has ended, in time."""
        halt, self._halt = self._halt, None
        if halt is None:
            return True
        halt.release()
        return bool(self._done.acquire(True, STOP_S))

    def _end(self) -> None:
        """The process ends by itself: tell what is left."""
        sampler, over = self._sampler, self._over
        self._over = True
        if sampler is not None and not over and self._pid == os.getpid():
            sampler.finish()

    # The thread

    def _wait(self, halt: Any, done: Any) -> None:
        try:
            # The program's signals go to its own threads.
            signal = __import__("_signal")
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            delay, imported = max(0.0, self._begun + SHORT_S - time.monotonic()), None
            while not halt.acquire(True, delay):
                delay = SHORT_S
                frame = sys._current_frames().get(self._target[0])
                if not _programs(frame):
                    continue
                self.met = (self.met or 0.0) + (SHORT_S if _meets(frame) else 0.0)
                if "torch" not in sys.modules:
                    self._look()
                    return
                # Importing it may take longer than that.
                if not getattr(sys.modules["torch"].__spec__, "_initializing", False):
                    imported = imported or time.monotonic()
                    if time.monotonic() - imported >= WITH_TORCH_S:
                        self._look()
                        return
        except BaseException:  # noqa: BLE001 - nor does it print
            self._over = True
        finally:
            done.release()

    def _look(self) -> None:
        from .frames import Frames
        from .record import RecordFile
        from .recorder import at_end
        from .sampler import StackSampler
        from .threads import hindered

        if hindered() is not None or self._over:
            self._over = True
            return
        sampler = StackSampler("main", RecordFile(self._run), Frames(), lambda: None)
        sampler.target = self._target
        self._sampler = sampler
        at_end(self._end)
        sampler.start()


def _programs(frame: Any) -> bool:
    """Whether a program is at work there: not Python's own start, and no process of multiprocessing's.

    A module, a folder or an archive that Python runs lies below frames of runpy's.
    """
    begins = False
    while frame is not None:
        file = frame.f_code.co_filename
        if file == "<frozen site>" or os.path.basename(file) in ("site.py", "sitecustomize.py"):
            return False
        if file.endswith(HELPERS):
            return False
        begins = begins or frame.f_code.co_name == "<module>"
        frame = frame.f_back
    return begins


def _meets(frame: Any) -> bool:
    """Tell whether the main thread waits in PyTorch for the other processes of its training."""
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file.endswith(MEETING) and name != "<module>":
            return True
        frame = frame.f_back
    return False


_lone: _Lone | None = None
