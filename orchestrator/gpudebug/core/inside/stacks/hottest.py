"""The lines of a program in which its thread was longest, for people.

Of a framework that trains, whose time is in many small pieces, the deepest function with enough of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.inside.stacks.shares import SampledStack, seen
from gpudebug.core.records import Stacks

_ENOUGH = 0.15
"""Of the watched time: a piece of a framework's that is smaller says less than the function around it."""


class Hot(NamedTuple):
    """A line of the program, `train.py:87`, and its shares (0 to 1) of the watched time: of all stacks in
    which it is the innermost of the program's lines, and of those the part that ran on a CPU.

    `phase` is the one in which most of it falls, `code` the line's source, "" if that is not known. For
    stacks with no line of the program's it is the innermost file, for a function as a whole its file.
    """

    site: str
    function: str
    share: float
    running_share: float
    phase: str
    code: str

    @property
    def state(self) -> str:
        """`runs` or `waits`, whichever takes more of it."""
        return "runs" if self.running_share >= self.share / 2 else "waits"


def hottest(stacks: Stacks) -> list[Hot]:
    """Return the lines with the most time first."""
    found: dict[tuple[str, int], _HotLine] = {}
    rows = seen(stacks)
    around = _Around(rows, _ENOUGH * stacks.seconds)
    for one in rows:
        if one.frames:
            key = around.place(one)
            line = found.setdefault(key, _HotLine((one.source or "") if key[1] else ""))
            line.seconds += one.seconds
            line.cpu_s += one.within("running")
            line.phases[one.phase] = line.phases.get(one.phase, 0.0) + one.seconds
    total = stacks.seconds or math.inf
    return [
        Hot(
            site=_site(frame, number),
            function=frame.rpartition(":")[2],
            share=min(1.0, line.seconds / total),
            running_share=min(1.0, line.cpu_s / total),
            phase=max(line.phases, key=lambda name: line.phases[name]),
            code=line.code,
        )
        for (frame, number), line in sorted(found.items(), key=lambda item: -item[1].seconds)
    ]


class _Around:
    """What stands for a stack: its line, its innermost file, or a function of the framework around it."""

    def __init__(self, rows: Sequence[SampledStack], enough: float) -> None:
        self._enough = enough
        self._packaged = {one.frames[one.own] for one in rows if one.packaged and one.own is not None}
        self._lines: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._functions: defaultdict[str, float] = defaultdict(float)
        for one in rows:
            if one.packaged and one.own is not None:
                self._lines[one.frames[one.own], one.line] += one.seconds
                for frame in self._packaged.intersection(one.frames):
                    self._functions[frame] += one.seconds

    def place(self, one: SampledStack) -> tuple[str, int]:
        if one.own is None:
            return one.frames[-1], 0
        line = (one.frames[one.own], one.line)
        if not one.packaged or self._lines[line] >= self._enough:
            return line
        above = (frame for frame in reversed(one.frames[: one.own + 1]) if frame in self._packaged)
        return next(((frame, 0) for frame in above if self._functions[frame] >= self._enough), line)


class _HotLine:
    def __init__(self, code: str) -> None:
        self.code = code
        self.seconds = self.cpu_s = 0.0
        self.phases: dict[str, float] = {}


def _site(frame: str, line: int) -> str:
    file = frame.rpartition(":")[0].rpartition("/")[2]
    return f"{file}:{line}" if line else file
