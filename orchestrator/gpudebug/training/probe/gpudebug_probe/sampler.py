"""A thread that looks at the stack of another one, and reports what it saw: see `stacks`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from _thread import _count, allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from random import Random
from time import sleep
from types import FrameType
from typing import Any

from .frames import DATA, Frames, stack_from
from .record import RecordFile
from .recorder import described
from .threads import delay_of, hindered, idle, stack_of, uncollected, waits_in

EVERY_S = 0.045
# What one sample counts for at most: a process may have been stopped.
LONGEST_S = 0.5
# Shares of the time on a CPU that leave no doubt, and how long it is looked at if there is one.
RUNS, WAITS, LOOK_S = 0.97, 0.01, 0.001
# Seconds between lines at first; of a worker.
TELL_S, WORKER_TELL_S = 2.0, 4.0
# Later than that, Python's lock was kept from us: the thread, where its CPU clock shows that it can be.
LATE_S, BY_IT = 0.001, 0.7
SWITCH_S = 0.0005
ROUNDS, HARDLY = 4, 0.15
MOST_STACKS, MOST_IDLE = 2000, 32
OTHER_STACKS = ("other", (), -1, 0)
STACKS_TOLD, LONGEST_TOLD = 100, 60_000
MOST_CODES = 16_384
# How long the end of a process, or a fork, waits for the thread to end.
STOP_S = 0.5
# The thread's time between two looks, by the CPU time of one, as far as samples allow.
SPARE = 100
# With more threads than that the others are not looked at.
MANY_THREADS = 64
FULL = "the record has no room for more"


class StackSampler:
    """A thread that looks, and what it has seen since its last report: seconds, CPU seconds, count by stack.

    `target` is the thread that it looks at, the clock that counts what that runs, and its number in /proc;
    zeros for none. `lost` is called when that has ended.
    """

    def __init__(self, of: str, record: RecordFile, frames: Frames, lost: Callable[[], None]) -> None:
        self.record = record
        self.target = (0, 0, 0)
        # How many times as seldom as others it reports.
        self.rare = 1
        # It is to start, and the thread that was asked to end has not yet.
        self.late = False
        self._lost = lost
        # Of the thread with this number: the seconds that it had waited for a CPU, at the last line and look.
        self._delayed, self._queued = (0, 0.0), 0.0
        # Lately seen stacks with the seconds of each in which the thread did not run.
        self._idle: list[tuple[Any, float]] = []
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
        # Garbage is not collected now, and was before.
        self._held = False
        # Since 3.12 no garbage is collected within a call of C, and before 3.11 nothing is made there that
        # could let it begin: what is collected may start threads, which waits for ever within this call.
        self._collects = sys.version_info[:2] == (3, 11)

    # Called in other threads

    def start(self) -> None:
        """Not if it has ended by itself. `late` afterwards: to be called again."""
        if self._halt is not None or self._why is not None:
            return
        # One that did not end in time goes on to its end: there are never two.
        self.late = self._done is not None and not self._done.acquire(False)
        if self.late:
            return
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
        """Tell whether the thread has ended, in time; one that had not is not waited for again."""
        halt, self._halt = self._halt, None
        self.late = False
        if halt is not None:
            halt.release()
        if self._done is not None and self._done.acquire(True, 0 if halt is None else STOP_S):
            self._done.release()
            return True
        return self._done is None

    def finish(self) -> None:
        if self.stop():
            with suppress(Exception):
                if self._why is not None:
                    tell_why(self.record, self._of, self._why)
                self._append(self._lines())

    def leave(self) -> None:
        """Where a process was forked the thread is not there: what it held for a moment is let go of."""
        self._let()
        self._hurry(False)

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
            self._hold()
            # The training's signals go to its own threads.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            spent = before = 0.0
            while self._why is None:
                # One look may have met much that is new.
                every = min(max(EVERY_S, SPARE * min(spent, before)), LONGEST_S / 1.5)
                delay = every * (0.5 + self._random())
                due = time.monotonic() + delay
                if self._aside(halt.acquire, True, delay):
                    break
                self._why = hindered()
                if self._why is None:
                    begun = time.thread_time()
                    self._turn(due)
                    spent, before = time.thread_time() - begun, spent
        except BaseException as error:  # noqa: BLE001 - nor does it print
            self._why = described(error, "looking at stacks")
        finally:
            self._let()
            self._hurry(False)
            done.release()

    def _turn(self, due: float) -> None:
        self._look(due)
        if self._due():
            self._aside(self._append, self._lines())
        if len(self._frames.known) > MOST_CODES:
            self._forget()
        if not self.record.rarity_of_stacks:
            self._why = FULL
            self._seen.clear()
            self._frames.forget()

    def _aside(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Do what may take its time, while garbage is collected as the program has it.

        While this thread is at work there is none collected: that runs code of the user's, which belongs into
        threads of the user's. Nothing is made here that could let it begin.
        """
        self._let()
        found = call(*arguments)
        self._hold()
        return found

    def _hold(self) -> None:
        self._held = gc.isenabled()
        gc.disable()

    def _let(self) -> None:
        if self._held:
            self._held = False
            gc.enable()

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
        before, self._queued = self._queued, delay_of(thread)
        if self._delayed[0] != thread:
            self._delayed, before = (thread, self._queued), self._queued
            self._idle.clear()
        if self._last_clock == clock:
            wall, used, late = max(now - self._last, 1e-6), cpu - self._last_cpu, now - due
            # Who is ready waits for nothing but a CPU.
            ready = used + max(0.0, self._queued - before)
            ran = min(1.0, ready / wall)
            if ran < RUNS:
                key = self._frames.inside(key, waits_in(thread))
            if WAITS < ran < RUNS:
                kept = self._switch is None and late > LATE_S and used >= BY_IT * late
                ran = 1.0 if kept else self._running(clock)
            self._add(key, min(wall, LONGEST_S), ran)
            self._used += min(wall, LONGEST_S) * used / wall
            self._was_ready(ready - wall)
        self._last, self._last_cpu, self._last_clock = now, cpu, clock

    def _was_ready(self, seconds: float) -> None:
        """The kernel counts what a thread waits for a CPU when it gets one: it was ready at looks before."""
        while seconds > 0 and self._idle:
            key, idle = self._idle.pop()
            given = min(idle, seconds)
            seconds -= given
            if key in self._seen:
                self._seen[key][1] += given

    def _folded(self, ident: int) -> tuple[str, tuple[int, ...], int, int] | None:
        stack = stack_of(ident, self._collects) if ident else []
        self._hurry(_count() <= MANY_THREADS and self._alone(ident))
        if not stack:
            return None
        return self._frames.fold(stack)

    def _alone(self, ident: int) -> bool:
        others = uncollected(sys._current_frames, self._collects)
        for known in (ident, get_ident()):
            others.pop(known, None)
        return all(idle(other.f_code) for other in others.values())

    def _hurry(self, alone: bool) -> None:
        """Be handed Python's lock sooner, while only the thread has to do with that."""
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
        """Return the share of the moment from now on that the thread runs."""
        begun, cpu = time.monotonic(), time.clock_gettime(clock)
        self._aside(sleep, LOOK_S)
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
        self._idle = [*self._idle[-MOST_IDLE:], (key, seconds * (1 - ran))]

    def _forget(self) -> None:
        """Of very much code, generated code: what was not reported yet counts by its phase alone."""
        seen, self._seen = self._seen, {}
        for key, spent in seen.items():
            entry = self._seen.setdefault((key[0], *OTHER_STACKS[1:]), [0.0, 0.0, 0])
            entry[:] = map(sum, zip(entry, spent))
        self._frames.forget()

    # Lines

    def _due(self) -> bool:
        rarity = self.record.rarity_of_stacks
        every = WORKER_TELL_S if self._of == "workers" else TELL_S
        return bool(rarity) and time.monotonic() - self._since >= every * rarity * self.rare

    def _lines(self) -> list[str]:
        """Return what was seen since they were last made: one line, or none."""
        seen, self._seen = self._seen, {}
        since, self._since = self._since, time.monotonic()
        used, self._used = self._used, 0.0
        self._idle.clear()
        thread, before = self._delayed
        self._delayed = thread, delay_of(thread)
        starved = max(0.0, self._delayed[1] - before)
        _spread(seen, used + starved)
        if not seen:
            return []
        most = sorted(seen.items(), key=lambda entry: -entry[1][0])
        told = STACKS_TOLD
        while True:
            line = self._line(since, seen, most[:told], starved)
            if len(line) <= LONGEST_TOLD:
                return [line]
            told //= 2

    def _append(self, lines: list[str]) -> None:
        if lines:
            self.record.append_stacks(lines)

    def _line(self, since: float, seen: Any, most: Any, starved: float) -> str:
        names: dict[str, int] = {}
        known = self._frames.known
        stacks, code = [], {}
        packaged: dict[int, None] = {}
        for (phase, ids, at, line), (seconds, ran, count) in most:
            # From the outermost in.
            places = [names.setdefault(known[key].name, len(names)) for key in reversed(ids)]
            if at >= 0:
                place = places[len(ids) - 1 - at]
                code[f"{place}:{line}"] = self._frames.source(known[ids[at]].file, line)
                if ids[at] in self._frames.packaged:
                    packaged[place] = None
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
            starved=_within(starved, totals[0]),
            frames=list(names),
            stacks=stacks,
            code=code,
            packaged=list(packaged),
        )


def tell_why(record: RecordFile, of: str, why: str) -> None:
    """Why no more stacks are reported."""
    line = [record.line("stacks", of=of, why=why)]
    # Of workers there may be many.
    if of == "workers":
        record.append_stacks(line)
    else:
        record.append(line, last=True)


def _spread(seen: dict[Any, list[float]], used: float) -> None:
    """Scale what each stack ran, up to all of its time: together they ran as long as the thread did, or was
    ready to. One that was hardly seen to run stays so: who wakes often is ready often, and yet waits.
    """
    most = [entry[0] if entry[1] >= HARDLY * entry[0] else max(0.0, entry[1]) for entry in seen.values()]
    for _ in range(ROUNDS):
        ran = sum(entry[1] for entry in seen.values())
        for entry, largest in zip(seen.values(), most):
            entry[1] = min(largest, max(0.0, entry[1] * used / ran)) if ran > 0 else 0.0


def _within(ran: float, seconds: float) -> float:
    return round(min(max(ran, 0.0), seconds), 4)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
