"""py-spy's `raw` format -> stacks with their counts.

A line is `thread (30303): MainThread;<module> (/src/train.py:18);main (/src/train.py:12) 76`: the thread, its
frames from the outermost in, how often it was seen so. py-spy prints the thread as /proc numbers it if it
knows that, else as Python does (`0x7F…`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"(?P<stack>.*) (?P<count>[0-9]{1,12})")
_THREAD = re.compile(r"thread \((?P<id>[^()]{1,40})\)(: (?P<name>.*))?", re.DOTALL)
_FRAME = re.compile(r"(?P<name>.*?) \((?P<file>.*?)(:(?P<line>[0-9]{1,7}))?\)")
_MAIN = "MainThread"
# Of a stack that recurses without end.
_DEEPEST = 1000


class RawFrame(NamedTuple):
    """One call: `line` is the one that runs, 0 if unknown."""

    name: str
    file: str
    line: int


class RawStack(NamedTuple):
    """A thread's stack, the outermost frame first, and how often it was seen.

    `tid` is the thread's number in /proc as its own namespace counts it, None if py-spy does not know it.
    """

    thread: str
    tid: int | None
    main: bool
    frames: tuple[RawFrame, ...]
    times: int


def read_raw(text: str) -> list[RawStack]:
    """Parse py-spy's output; a line that is none of its is left out."""
    return [found for line in text.split("\n") if (found := _stack(line))]


def _stack(line: str) -> RawStack | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    first, *rest = match["stack"].split(";")
    # A thread's name may hold the separator.
    while rest and _frame(rest[0]) is None:
        first = f"{first};{rest.pop(0)}"
    thread = _THREAD.fullmatch(first)
    if thread is None:
        return None
    number = thread["id"]
    frames = tuple(frame for part in rest[:_DEEPEST] if (frame := _frame(part)))
    return RawStack(
        thread=number,
        tid=int(number) if number.isdecimal() else None,
        main=thread["name"] == _MAIN,
        frames=frames,
        times=int(match["count"]),
    )


def _frame(part: str) -> RawFrame | None:
    match = _FRAME.fullmatch(part)
    return RawFrame(match["name"], match["file"], int(match["line"] or 0)) if match else None
