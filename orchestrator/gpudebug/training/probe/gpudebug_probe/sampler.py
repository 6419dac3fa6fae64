"""A thread that looks at the stack of another one, and tells what it saw: see `stacks`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from random import Random
from types import CodeType, FrameType
from typing import Any

from .frames import DATA, WALKED, Frames, stack_from
from .record import Record
from .recorder import described

EVERY_S = 0.033
# What one sample stands for at most: a process may have been stopped.
LONGEST_S = 0.5
# Shares of the time on a CPU that leave no doubt, and how long it is looked at where there is one.
RUNS, WAITS, LOOK_S = 0.97, 0.01, 0.001
# Seconds between lines at first; of a worker.
TELL_S, WORKER_TELL_S = 2.0, 4.0
# Later than that, somebody kept Python's lock from us: the thread, where its CPU clock shows that it can be.
LATE_S, BY_IT = 0.001, 0.7
SWITCH_S = 0.0005
ROUNDS, HARDLY = 4, 0.15
# Innermost frames of threads that are not at work.
IDLE = {("threading.py", "wait"), ("threading.py", "_wait_for_tstate_lock"), ("selectors.py", "select")}
MOST_STACKS = 2000
OTHER_STACKS = ("other", (), -1, 0)
STACKS_TOLD, LONGEST_TOLD = 100, 60_000
MOST_CODES = 16_384
# How long the end of a process, or a fork, waits for the thread to end.
STOP_S = 0.5


class Sampler:
    """A thread that looks, and what it has seen since it last told: seconds, CPU seconds, count by stack.

    `target` is the thread that it looks at, the clock that counts what that runs, and its number in /proc;
    zeros for none. `lost` is called when that has ended.
    """

    def __init__(self, of: str, record: Record, frames: Frames, lost: Callable[[], None]) -> None:
        self.record = record
        self.target = (0, 0, 0)
        self._lost = lost
        # Of the thread with this number: the seconds that it has waited for a CPU.
        self._delayed = (0, 0.0)
        self._of = of
        self._frames = frames
        self._random = Random(time.monotonic_ns() ^ record.pid).random
        self._seen: dict[tuple[str, tuple[int, ...], int, int], list[float]] = {}
        self._since = self._last = time.monotonic()
        self._last_cpu, self._last_clock = 0.0, 0
        # What the clock says that the thread ran in all.
        self._used = 0.0
        self._halt: Any = None
        self._done: Any = None
        self._why: str | None = None
        self._marked: Any = None
        self._switch: float | None = None
        # Since 3.12 no garbage is collected within a call of C, and before 3.11 nothing is made there that
        # could let it begin: what is collected may start threads, which waits for ever within this call.
        self._collects = sys.version_info[:2] == (3, 11)

    # Called in other threads

    def start(self) -> None:
        # One that did not end in time goes on to its end: there are never two.
        ended = self._done is None or self._done.acquire(False)
        if self._halt is None and self._why is None and ended:
            halt, done = allocate_lock(), allocate_lock()
            halt.acquire()
            done.acquire()
            self._halt, self._done = halt, done
            self._last_clock = 0
            try:
                # Not one of `threading`: a program may count, trace and wait for those.
                start_new_thread(self._run, (halt, done))
            except BaseException:
                self._halt = self._done = None
                raise

    def stop(self) -> bool:
        """Whether the thread has ended, in time."""
        halt, self._halt = self._halt, None
        if halt is not None:
            halt.release()
        if self._done is not None and self._done.acquire(True, STOP_S):
            self._done.release()
            return True
        return self._done is None

    def finish(self) -> None:
        if self.stop():
            with suppress(Exception):
                self._tell(last=True)

    def mark(self, frame: FrameType) -> None:
        """This stack counts until `measure`; not while the thread looks."""
        if self._why is None:
            clock = self.target[1]
            self._marked = (
                self._frames.fold(stack_from(frame)),
                time.monotonic(),
                clock,
                time.clock_gettime(clock),
            )

    def measure(self) -> None:
        marked, self._marked = self._marked, None
        if marked is not None:
            key, begun, clock, cpu = marked
            took = max(time.monotonic() - begun, 1e-6)
            seconds, ran = min(took, LONGEST_S), (time.clock_gettime(clock) - cpu) / took
            self._add(key, seconds, ran)
            self._used += seconds * ran

    # The thread

    def _run(self, halt: Any, done: Any) -> None:
        try:
            # The training's signals go to its own threads.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while True:
                delay = EVERY_S * (0.5 + self._random())
                due = time.monotonic() + delay
                if halt.acquire(True, delay):
                    break
                self._look(due)
                if self._due():
                    self._tell()
        except BaseException as error:  # noqa: BLE001 - nor does it print
            self._why = described(error, "looking at stacks")
        finally:
            self._hurry(False)
            done.release()

    def _look(self, due: float) -> None:
        ident, clock, thread = self.target
        now = time.monotonic()
        try:
            cpu = time.clock_gettime(clock) if ident else 0.0
            key = self._folded(ident)
        except OSError:
            key = None
        if key is None:
            self._last_clock = 0
            if ident and self.target[0] == ident:
                self.target = (0, 0, 0)
                self._lost()
            return
        if self._delayed[0] != thread:
            self._delayed = thread, _delay(thread)
        if self._last_clock == clock:
            wall, used, late = max(now - self._last, 1e-6), cpu - self._last_cpu, now - due
            ran = used / wall
            if WAITS < ran < RUNS:
                kept = self._switch is None and late > LATE_S and used >= BY_IT * late
                ran = 1.0 if kept else self._running(clock)
            self._add(key, min(wall, LONGEST_S), ran)
            self._used += min(wall, LONGEST_S) * used / wall
        self._last, self._last_cpu, self._last_clock = now, cpu, clock

    def _folded(self, ident: int) -> tuple[str, tuple[int, ...], int, int] | None:
        stack = _stack(ident, self._collects) if ident else []
        others = _uncollected(sys._current_frames, self._collects)
        for known in (ident, get_ident()):
            others.pop(known, None)
        self._hurry(all(_idle(other.f_code) for other in others.values()))
        return self._frames.fold(stack) if stack else None

    def _hurry(self, alone: bool) -> None:
        """Be handed Python's lock sooner, while nobody but the thread has to do with that."""
        if alone and self._switch is None:
            interval = sys.getswitchinterval()
            if interval > SWITCH_S:
                self._switch = interval
                sys.setswitchinterval(SWITCH_S)
        elif not alone and self._switch is not None:
            # Not where the program has set its own meanwhile.
            if abs(sys.getswitchinterval() - SWITCH_S) < 1e-5:
                sys.setswitchinterval(self._switch)
            self._switch = None

    def _running(self, clock: int) -> float:
        """The share of the moment from now on that the thread runs."""
        begun, cpu = time.monotonic(), time.clock_gettime(clock)
        time.sleep(LOOK_S)
        return (time.clock_gettime(clock) - cpu) / (time.monotonic() - begun)

    def _add(self, key: tuple[str, tuple[int, ...], int, int], seconds: float, ran: float) -> None:
        if self._of == "workers":
            key = (DATA, *key[1:])
        entry = self._seen.get(key)
        if entry is None:
            if len(self._seen) >= MOST_STACKS:
                key = OTHER_STACKS
            entry = self._seen.setdefault(key, [0.0, 0.0, 0])
        entry[0] += seconds
        entry[1] += seconds * ran
        entry[2] += 1

    # Lines

    def _due(self) -> bool:
        rarity = self.record.rarity_of_stacks
        every = WORKER_TELL_S if self._of == "workers" else TELL_S
        return bool(rarity) and time.monotonic() - self._since >= every * rarity

    def _tell(self, last: bool = False) -> None:
        seen, self._seen = self._seen, {}
        since, self._since = self._since, time.monotonic()
        used, self._used = self._used, 0.0
        thread, before = self._delayed
        self._delayed = thread, _delay(thread)
        _spread(seen, used + max(0.0, self._delayed[1] - before))
        lines = []
        if seen:
            most = sorted(seen.items(), key=lambda entry: -entry[1][0])
            told = STACKS_TOLD
            while True:
                lines = [self._line(since, seen, most[:told])]
                if len(lines[0]) <= LONGEST_TOLD:
                    break
                told //= 2
        if last and self._why is not None:
            lines.append(self.record.line("stacks", of=self._of, why=self._why))
        if lines:
            self.record.append_stacks(lines)
        if len(self._frames.known) > MOST_CODES:
            self._frames.forget()

    def _line(self, since: float, seen: Any, most: Any) -> str:
        names: dict[str, int] = {}
        known = self._frames.known
        stacks, code = [], {}
        for (phase, ids, at, line), (seconds, ran, count) in most:
            # From the outermost in.
            places = [names.setdefault(known[key].name, len(names)) for key in reversed(ids)]
            if at >= 0:
                code[f"{places[len(ids) - 1 - at]}:{line}"] = self._frames.source(known[ids[at]].file, line)
            places = [n for before, n in zip([-1, *places], places) if n != before]
            stacks.append([phase, places, line, round(seconds, 4), _within(ran, seconds), count])
        totals = [sum(entry[place] for entry in seen.values()) for place in range(3)]
        return self.record.line(
            "stacks",
            t0=_number(os.environ.get("GPUDEBUG_T0")),
            of=self._of,
            since=round(since, 6),
            s=round(totals[0], 4),
            cpu=_within(totals[1], totals[0]),
            n=totals[2],
            frames=list(names),
            stacks=stacks,
            code=code,
        )


def _idle(code: CodeType) -> bool:
    return (os.path.basename(code.co_filename), code.co_name) in IDLE


def _stack(ident: int, collects: bool) -> list[FrameType]:
    """The frames of another thread, from inside out; none where it has ended.

    In one call of C, and without collecting garbage in it: Python's lock is never let go of there. A thread
    that ran meanwhile would leave frames that are walked, which crashes Python 3.11.
    """
    stack: list[FrameType] = []
    inside = islice(map(itemgetter(ident), iter(sys._current_frames, None)), 1)
    outwards = accumulate(chain(inside, repeat("f_back", WALKED - 1)), getattr)
    # The outermost frame has None outside of it, and that has nothing.
    with suppress(AttributeError, KeyError):
        _uncollected(partial(stack.extend, outwards), collects)
    return stack[:-1] if stack and stack[-1] is None else stack


def _uncollected(call: Callable[[], Any], collects: bool) -> Any:
    if not collects:
        return call()
    enabled = gc.isenabled()
    gc.disable()
    try:
        return call()
    finally:
        if enabled:
            gc.enable()


def _spread(seen: dict[Any, list[float]], used: float) -> None:
    """Scale what each stack ran, up to all of its time: together they ran as long as the thread did, or was
    ready to. One that was hardly seen to run stays so: who wakes often is ready often, and yet waits.
    """
    most = [entry[0] if entry[1] >= HARDLY * entry[0] else max(0.0, entry[1]) for entry in seen.values()]
    for _ in range(ROUNDS):
        ran = sum(entry[1] for entry in seen.values())
        for entry, largest in zip(seen.values(), most):
            entry[1] = min(largest, max(0.0, entry[1] * used / ran)) if ran > 0 else 0.0


def _delay(thread: int) -> float:
    """Seconds for which this thread of ours was ready to run and did not, so far; 0 where nobody counts."""
    try:
        fd = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 200).split()[1]) / 1e9
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0.0


def _within(ran: float, seconds: float) -> float:
    return round(min(max(ran, 0.0), seconds), 4)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
