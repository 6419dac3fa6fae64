"""Threads of this process: whether one of ours may look at another, where that is, how long it waits."""

from __future__ import annotations

import gc
import os
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any

from .frames import WALKED

# Innermost frames of threads that are not at work.
IDLE = {("threading.py", "wait"), ("threading.py", "_wait_for_tstate_lock"), ("selectors.py", "select")}
# What gevent and eventlet replace: theirs know no threads, and those that were there first cannot be had.
OWN = all(isinstance(one, BuiltinFunctionType) for one in (start_new_thread, get_ident, time.sleep)) and (
    isinstance(allocate_lock, BuiltinFunctionType) or getattr(allocate_lock, "__module__", "") == "_thread"
)
MONITORING = getattr(sys, "monitoring", None)
# What a thread waits for by the number of the system call that it is in; for "?" the first argument, a file's
# descriptor, says it, for "-" that there are none. Kept for good: a stack is known by the id of the word.
DISK, SOCKET, FSYNC, PAGE, SLEEP, ASK, NONE = "disk", "socket", "fsync", "page", "sleep", "?", "-"
_X86 = {
    **dict.fromkeys((0, 1, 17, 18, 19, 20, 295, 296), ASK),
    **dict.fromkeys((2, 4, 5, 6, 87, 82, 83, 84, 217, 257, 262, 332), DISK),
    **dict.fromkeys((42, 43, 44, 45, 46, 47, 288, 299, 307), SOCKET),
    **dict.fromkeys((26, 74, 75, 162, 277, 306), FSYNC),
    **dict.fromkeys((35, 230), SLEEP),
    **dict.fromkeys((23, 270), NONE),
}
_ARM = {
    **dict.fromkeys((63, 64, 65, 66, 67, 68, 69, 70), ASK),
    **dict.fromkeys((34, 35, 38, 56, 61, 79, 80, 276, 291), DISK),
    **dict.fromkeys((202, 203, 206, 207, 211, 212, 242, 243, 269), SOCKET),
    **dict.fromkeys((81, 82, 83, 84, 227, 267), FSYNC),
    **dict.fromkeys((101, 115), SLEEP),
    72: NONE,
}
CALLS = {"x86_64": _X86, "aarch64": _ARM}.get(os.uname().machine, {})


def hindered() -> str | None:
    """Return why no thread of ours may look; None if one may."""
    if not OWN:
        return "a library has replaced Python's threads (gevent, eventlet)"
    # Since 3.12 what it counts are the calls of all threads, as if one had made them.
    if MONITORING is not None and MONITORING.get_tool(MONITORING.PROFILER_ID) is not None:
        return "a profiler is at work that would count ours in (cProfile)"
    return None


def idle(code: CodeType) -> bool:
    return (os.path.basename(code.co_filename), code.co_name) in IDLE


def stack_of(ident: int, collects: bool) -> list[FrameType]:
    """Return the frames of another thread, from inside out; none if it has ended.

    In one call of C, and without collecting garbage in it: Python's lock is never let go of there. A thread
    that ran meanwhile would leave frames that are walked, which crashes Python 3.11.
    """
    stack: list[FrameType] = []
    inside = islice(map(itemgetter(ident), iter(sys._current_frames, None)), 1)
    outwards = accumulate(chain(inside, repeat("f_back", WALKED - 1)), getattr)
    # The outermost frame has None outside of it, and that has nothing.
    with suppress(AttributeError, KeyError):
        uncollected(partial(stack.extend, outwards), collects)
    return stack[:-1] if stack and stack[-1] is None else stack


def uncollected(call: Callable[[], Any], collects: bool) -> Any:
    if not collects:
        return call()
    enabled = gc.isenabled()
    gc.disable()
    try:
        return call()
    finally:
        if enabled:
            gc.enable()


def delay_of(thread: int) -> float:
    """Seconds for which this thread of ours was ready to run and did not, so far; 0 if not counted."""
    try:
        fd = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 200).split()[1]) / 1e9
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0.0


def waits_in(thread: int) -> str:
    """Return what this thread of ours waits for: a file's data (`disk`), its way to the disk (`fsync`), a
    page of a mapped file (`page`), another machine or process (`socket`), or nothing but time (`sleep`). ""
    for all else, and if nothing shows it.
    """
    try:
        words = _text(f"/proc/self/task/{thread}/syscall").split()
        if len(words) > 2 and words[0] == "-1":
            # Outside of a call it waits for a page alone, which `D` shows.
            return (
                PAGE if _text(f"/proc/self/task/{thread}/stat").rpartition(")")[2].split()[0] == "D" else ""
            )
        call = CALLS.get(int(words[0]), "")
        if call is NONE:
            return SLEEP if int(words[1], 16) == 0 else ""
        if call is not ASK:
            return call
        link = os.readlink(f"/proc/self/fd/{int(words[1], 16)}")
        if link.startswith("socket:"):
            return SOCKET
        return DISK if link.startswith("/") and not link.startswith(("/dev/", "/proc/", "/sys/")) else ""
    except (OSError, ValueError, IndexError):
        return ""


def _text(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1000).decode("ascii", "replace")
    finally:
        os.close(fd)
