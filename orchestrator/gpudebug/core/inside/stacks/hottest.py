"""The lines of a program in which its thread was longest, for people."""

from __future__ import annotations

import math
from typing import NamedTuple

from gpudebug.core.inside.stacks.shares import seen
from gpudebug.core.records import Stacks


class Hot(NamedTuple):
    """A line of the program, `train.py:87`, and its shares (0 to 1) of the watched time: of all stacks in
    which it is the innermost of the program's lines, and of those the part that ran on a CPU.

    `phase` is the one in which most of it falls, `code` the line's source, "" if that is not known. For
    stacks with no line of the program's it is the innermost file.
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
    """The lines with the most time first."""
    found: dict[tuple[str, int], _HotLine] = {}
    for one in seen(stacks):
        if one.frames:
            key = (one.frames[one.own], one.line) if one.own is not None else (one.frames[-1], 0)
            line = found.setdefault(key, _HotLine(one.source or ""))
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


class _HotLine:
    def __init__(self, code: str) -> None:
        self.code = code
        self.seconds = self.cpu_s = 0.0
        self.phases: dict[str, float] = {}


def _site(frame: str, line: int) -> str:
    file = frame.rpartition(":")[0].rpartition("/")[2]
    return f"{file}:{line}" if line else file
