"""What the host did, thread by thread: operators with their own time, spans that matter, stacks of calls."""

from __future__ import annotations

from array import array

import numpy as np

from gpudebug.core.trace.events import HOLDER, LOADER, OTHER, OWN, READ, EventKind, Names
from gpudebug.core.trace.spans import Named

# Events that may come in any order among each other. Kineto writes a thread's events in the order of time.
WINDOW = 50_000
_SLICE = 20_000
# Frames of a stack that are kept: the innermost say what was called, the outer ones from where.
_FRAMES = 6
_HOLDERS = 200_000
_STACKS = 20_000

# Name and kind of each frame, the innermost first.
Stack = tuple[tuple[int, int], ...]


class HostThread:
    """Open spans of one thread: all of them, and the operators alone."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, int, int]] = []
        self.operators: list[tuple[float, int]] = []
        self.seen = -np.inf


class Hosts:
    """Takes operators, annotations and Python functions; `finish` once all are in.

    `calls`, `total` and `own` are per name: how often, the time of the outermost, and the time that no
    operator inside took (microseconds). `operators`, `loaders`, `annotations` and `reads` are the outermost
    spans of their kind. `late` counts events that came more than `window` events after a later one of their
    thread: their children's time is counted twice.
    """

    def __init__(self, names: Names, window: int = WINDOW) -> None:
        self.names = names
        self.calls: dict[int, int] = {}
        self.total: dict[int, float] = {}
        self.own: dict[int, float] = {}
        self.operators, self.loaders, self.annotations = Named(), Named(), Named()
        self.late = 0
        self.reads: dict[tuple[int, Stack], list[float]] = {}
        self.holders = Holders()
        self._window = window
        self._threads: dict[int | str | None, int] = {}
        self._states: list[HostThread] = []
        self._start, self._end = array("d"), array("d")
        self._name, self._thread, self._kind = array("i"), array("H"), array("B")

    def thread(self, tid: int | str | None) -> int:
        """Return a small number for a thread; beyond 65,000 threads the last one's."""
        number = self._threads.get(tid)
        if number is None:
            number = min(len(self._states), 0xFFFF)
            self._threads[tid] = number
            if number == len(self._states):
                self._states.append(HostThread())
        return number

    def add(self, start: float, duration: float, name: int, tid: int | str | None, kind: int) -> None:
        self._start.append(start)
        self._end.append(start + duration)
        self._name.append(name)
        self._thread.append(self.thread(tid))
        self._kind.append(kind)
        if len(self._start) >= 2 * self._window:
            self._sweep(self._window)

    def finish(self) -> None:
        self._sweep(len(self._start))

    def _sweep(self, count: int) -> None:
        """Take in `count` events; of each thread the latest wait for what may still come between."""
        start, end = np.array(self._start), np.array(self._end)
        name, thread = np.array(self._name), np.array(self._thread)
        kind = np.array(self._kind)
        # A parent is before a child that begins with it: the longer, then the annotation.
        order = np.lexsort((-kind.astype(np.int16), -end, start, thread))
        # Of each thread, as many of its latest events wait as it had among the last that arrived.
        size = np.bincount(thread)
        waiting = np.bincount(thread[count:], minlength=len(size))
        place = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
        waits = place >= np.repeat(size - waiting, size)
        now, held = order[~waits], np.sort(order[waits])
        for at in range(0, len(now), _SLICE):
            part = now[at : at + _SLICE]
            self._take(
                thread[part].tolist(),
                start[part].tolist(),
                end[part].tolist(),
                name[part].tolist(),
                kind[part].tolist(),
            )
        self._start, self._end = array("d", start[held].tobytes()), array("d", end[held].tobytes())
        self._name, self._thread = array("i", name[held].tobytes()), array("H", thread[held].tobytes())
        self._kind = array("B", kind[held].tobytes())

    def _take(
        self, threads: list[int], starts: list[float], ends: list[float], names: list[int], kinds: list[int]
    ) -> None:
        flags = self.names.flags
        current, state = -1, HostThread()
        for thread, start, end, name, kind in zip(threads, starts, ends, names, kinds, strict=True):
            if thread != current:
                current, state = thread, self._states[thread]
            if start < state.seen:
                self._late(start, end, name, kind)
                continue
            state.seen = start
            spans = state.spans
            while spans and spans[-1][0] <= start:
                spans.pop()
            flag = flags[name]
            if flag & LOADER and not any(flags[s[1]] & LOADER for s in spans):
                self.loaders.add(start, end, name)
            if kind == EventKind.OPERATOR:
                self._operator(state, start, end, name)
            elif kind == EventKind.ANNOTATION:
                if not any(s[2] == EventKind.ANNOTATION for s in spans):
                    self.annotations.add(start, end, name)
            elif not spans:
                self.annotations.add(start, end, OTHER)
            if flag & OWN:
                # No frame of the user's: what it calls is right below its caller.
                continue
            spans.append((end, name, kind))
            if flag & (HOLDER | READ):
                self._hold(thread, start, end, name, flag, spans)

    def _operator(self, state: HostThread, start: float, end: float, name: int) -> None:
        open_ = state.operators
        while open_ and open_[-1][0] <= start:
            open_.pop()
        duration = end - start
        if open_:
            outer_end, outer = open_[-1]
            self.own[outer] -= min(end, outer_end) - start
        else:
            self.operators.add(start, end, name)
        if name in self.calls:
            self.calls[name] += 1
            self.own[name] += duration
            if not any(o[1] == name for o in open_):
                self.total[name] += duration
        else:
            self.calls[name], self.own[name], self.total[name] = 1, duration, duration
        open_.append((end, name))

    def _late(self, start: float, end: float, name: int, kind: int) -> None:
        self.late += 1
        if self.names.flags[name] & LOADER:
            self.loaders.add(start, end, name)
        if kind == EventKind.OPERATOR:
            self._operator(HostThread(), start, end, name)
        else:
            self.annotations.add(start, end, name)

    def _hold(
        self, thread: int, start: float, end: float, name: int, flag: int, spans: list[tuple[float, int, int]]
    ) -> None:
        stack = tuple((s[1], s[2]) for s in spans[: -1 - _FRAMES : -1])
        if flag & READ:
            key = (name, stack[1:])
            if key not in self.reads and len(self.reads) >= _STACKS:
                key = (name, ())
            of_stack = self.reads.setdefault(key, [0, 0.0])
            of_stack[0] += 1
            of_stack[1] += end - start
        self.holders.add(thread, start, end, stack)


class Holders:
    """Spans that may hold a synchronising call, with their stacks: what was called from where, by thread."""

    def __init__(self) -> None:
        self.stacks: list[Stack] = []
        self._ids: dict[Stack, int] = {}
        self._start, self._end = array("d"), array("d")
        self._thread, self._stack = array("H"), array("i")

    def add(self, thread: int, start: float, end: float, stack: Stack) -> None:
        if len(self._start) >= _HOLDERS:
            return
        number = self._ids.get(stack)
        if number is None:
            if len(self.stacks) >= _STACKS:
                return
            number = self._ids[stack] = len(self.stacks)
            self.stacks.append(stack)
        self._start.append(start)
        self._end.append(end)
        self._thread.append(thread)
        self._stack.append(number)

    def find(self, thread: int, start: list[float], end: list[float]) -> list[Stack | None]:
        """For each call of one thread the stack of the innermost span that holds it."""
        mine = np.array(self._thread) == thread
        begin, stop = np.array(self._start)[mine], np.array(self._end)[mine]
        which = np.array(self._stack)[mine]
        order = np.lexsort((-stop, begin))
        begin, stop, which = begin[order], stop[order], which[order]
        at = np.searchsorted(begin, np.array(start), side="right") - 1
        found: list[Stack | None] = []
        for index, moment in zip(at.tolist(), end, strict=True):
            # A few siblings may lie between a span and a call in it that came later.
            near = range(index, max(index - 16, -1), -1)
            held = next((i for i in near if stop[i] >= moment), None)
            found.append(None if held is None else self.stacks[int(which[held])])
        return found
