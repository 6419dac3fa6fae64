"""The records of a training's processes on several nodes, joined into one: by node, on one clock."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gpudebug.core.inside.probe.processes import finite, read_line

NODE_FILE = re.compile(r"probe\.([A-Za-z0-9_.-]{1,64})\.jsonl", re.ASCII)
MOST_NODES = 16
"""Other nodes that are joined: `MOST_RANKS` ranks are eight nodes of eight GPUs."""
CLOCK_WITHIN_S = 0.1
"""A measured offset that may be further off is none: ranks are told apart by parts of a second."""
FILE_TICK_S = 0.01
"""How coarse the times of files are: a tick of the kernel, at most 10 ms (CONFIG_HZ=100)."""
PIDS = 1 << 22
"""No number of a process is larger (PID_MAX_LIMIT of 64-bit Linux): each node adds so much to its own."""


class ClockTouch(NamedTuple):
    """A node's clock, within some seconds, at the moment of a time of the shared file system."""

    at: float
    within: float
    stamp: float


def records_of(names: Iterable[str]) -> dict[str, str]:
    """The records of other nodes among a folder's files, by node: at most `MOST_NODES`, n2 before n10."""
    found = {match[1]: name for name in names if (match := NODE_FILE.fullmatch(name))}
    return {node: found[node] for node in sorted(found, key=_natural)[:MOST_NODES]}


def joined(first: str, others: Mapping[str, str]) -> str:
    """`first`, the record of the node that the run was launched on, then those of the `others`, by node.

    The number of another node's process is raised by that node's place times `PIDS`, and its start has the
    `offset` of its clock to the first node's in seconds, if it was measured. Torn lines are left out.
    """
    base = _touch(first)
    lines = [first if first.endswith("\n") or not first else first + "\n"]
    for place, node in enumerate(sorted(others, key=_natural)[:MOST_NODES], 1):
        own = _touch(others[node])
        ahead = clock_offset(base, own) if base and own else None
        lines += (_raised(line, place, ahead) for line in _lines(others[node]))
    return "".join(lines)


def _natural(node: str) -> list[tuple[int, str]]:
    """n2 before n10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", node)]


def _lines(text: str) -> Iterator[dict[str, Any]]:
    return (line for raw in text.split("\n") if (line := read_line(raw)) is not None)


def _raised(line: dict[str, Any], place: int, offset: float | None) -> str:
    found = {**line, "pid": line["pid"] + place * PIDS}
    if line["kind"] == "start" and offset is not None:
        found["offset"] = round(offset, 6)
    return json.dumps(found, separators=(",", ":")) + "\n"


def _touch(text: str) -> ClockTouch | None:
    """Return the best that the processes of one node measured."""
    found = []
    for line in _lines(text):
        clock = line.get("clock") if line["kind"] == "start" else None
        known = [x for x in map(finite, clock) if x is not None] if isinstance(clock, list) else []
        if len(known) == len(ClockTouch._fields):
            found.append(ClockTouch(*known))
    return min(found, key=lambda touch: touch.within, default=None)


def clock_offset(base: ClockTouch, own: ClockTouch) -> float | None:
    """Return what a node's clock is ahead of the first one's; None if that is not known well enough."""
    within = base.within + own.within + FILE_TICK_S
    if not 0 <= within <= CLOCK_WITHIN_S:
        return None
    return (own.at - own.stamp) - (base.at - base.stamp)
