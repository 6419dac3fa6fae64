"""Which of the processes below a command is its program: decided here alone, from what each did.

A process that did next to nothing while one that it had started worked is a launcher, whatever it is called:
a shell, `conda run`, a notebook's kernel manager, a script that reads its child's output. What a program
starts works for it. The sampler, in whose process this runs too, notes what each process did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from gpudebug.core.lazy import regex

LITTLE = 0.05
"""A launcher runs for at most this part of the time that it has children (loops that copy their output take
1 % to 3 %)."""
TIMES = 5.0
"""And all below it together run at least so many times as long."""
MOSTLY = 0.5
"""It waits for this part of the time since it started the first of them: a helper that is soon over, such as
`git` or `lscpu`, makes no launcher of the program that asks it."""
TICK_S = 0.02
"""CPU time is counted in steps of 10 ms: twice that is next to nothing."""
WORKS = 0.2
"""Of two processes side by side one that runs for less than this part of the other's time serves it."""
SIDE_BY_SIDE = 0.5
"""Processes are side by side if they share this part of the shorter one's life."""
MOST = 24
_LONGEST = 40
_SPAN = regex(r"\d+(\.\d*)?[smhd]?", re.ASCII)
_TIMEOUT_VALUES = ("-k", "--kill-after", "-s", "--signal")
# Options of Python that take the next word if nothing follows in their own.
_WITH_VALUE = "XWcm"
_KINDS = (int, int, str, float, float, float, float, float, bool, str, str, bool, int)
_EARLIER = len(_KINDS) - 1
"""Of earlier versions: without `cores`."""


class RunProcess(NamedTuple):
    """A process below the command, from `since_s` to `until_s` after its launch; `name` is a Python's script,
    `parent` is 0 for none of them, `cpu_s` what it used in all.

    `beside_s` is how long it had children that are no workers, `beside_cpu_s` what it used meanwhile.
    `serves`: it is a worker of another one's, or below one. `output` is where its standard output leads:
    `log`, `file`, `null`, `kernel` (a notebook's keeps it), `other`, or `pipe` with the name of who reads it
    behind a blank. `apart` is what keeps the probe out of a Python (`-I`, `-E`, `-S`, `env` without our
    variables, `path` with another PYTHONPATH), `buffers` that Python holds its output back, `cores` how many
    it may use. "", False and 0 cores are unknown, too.
    """

    pid: int
    parent: int
    name: str
    since_s: float
    until_s: float
    cpu_s: float
    beside_s: float = 0.0
    beside_cpu_s: float = 0.0
    serves: bool = False
    output: str = ""
    apart: str = ""
    buffers: bool = False
    cores: int = 0

    @property
    def reader(self) -> str | None:
        """The name of the process that its output goes through; None if it goes through none."""
        kind, _, name = self.output.partition(" ")
        return name or None if kind == "pipe" else None


def programs(seen: Iterable[RunProcess]) -> tuple[RunProcess, ...]:
    """Return the programs, the one that used the most CPU time first; of several that ran one after another,
    and of trainings side by side, each."""
    own = {one.pid: one for one in seen if not one.serves}
    below: dict[int, list[int]] = {}
    for one in own.values():
        below.setdefault(one.parent, []).append(one.pid)
    found: list[RunProcess] = []
    pending = [one.pid for one in own.values() if one.parent not in own]
    while pending:
        pid = pending.pop()
        if _launches(own[pid], [own[other] for other in _all_below(pid, below)]):
            pending += below[pid]
        else:
            found.append(own[pid])
    found.sort(key=lambda one: (-one.cpu_s, one.since_s, one.pid))
    kept: list[RunProcess] = []
    for one in found:
        if all(one.cpu_s >= WORKS * other.cpu_s for other in kept if side_by_side(one, other)):
            kept.append(one)
    return tuple(kept)


def _launches(one: RunProcess, below: Sequence[RunProcess]) -> bool:
    below_s = sum(other.cpu_s for other in below)
    little = one.beside_cpu_s <= LITTLE * one.beside_s + TICK_S
    if one.beside_s <= 0 or not little or below_s <= 0 or below_s < TIMES * (one.beside_cpu_s - TICK_S):
        return False
    return one.beside_s >= MOSTLY * (one.until_s - min(other.since_s for other in below))


def _all_below(pid: int, below: Mapping[int, Sequence[int]]) -> list[int]:
    found: list[int] = []
    pending = list(below.get(pid, ()))
    while pending:
        found.append(pending.pop())
        pending += below.get(found[-1], ())
    return found


def side_by_side(one: RunProcess, other: RunProcess) -> bool:
    """Tell whether two processes ran at the same time."""
    shared = min(one.until_s, other.until_s) - max(one.since_s, other.since_s)
    shorter = min(one.until_s - one.since_s, other.until_s - other.since_s)
    return shared >= 0 and shared >= SIDE_BY_SIDE * shorter


def as_notes(seen: Iterable[RunProcess]) -> list[list[object]]:
    """Return what the sampler writes of them, those with the most CPU time."""
    most = sorted(seen, key=lambda one: -one.cpu_s)[:MOST]
    return [list(one) for one in sorted(most, key=lambda one: one.since_s)]


def of_notes(notes: object) -> tuple[RunProcess, ...]:
    """Parse what `as_notes` wrote; what is no process of that form is left out."""
    rows = notes if isinstance(notes, list) else []
    return tuple(one for row in rows[:MOST] if (one := _of_row(row)) is not None)


def _of_row(row: object) -> RunProcess | None:
    if not isinstance(row, list) or not _EARLIER <= len(row) <= len(_KINDS):
        return None
    values: list[Any] = []
    for kind, value in zip(_KINDS, row, strict=False):
        if kind in (str, bool):
            if not isinstance(value, kind):
                return None
            values.append(value[:_LONGEST] if isinstance(value, str) else value)
        elif isinstance(value, (int, float)) and 0 <= value <= 2**53:
            values.append(kind(value))
        else:
            return None
    return RunProcess(*values)


def time_limit(argv: Sequence[str]) -> str | None:
    """Return the command's own time limit, as `timeout 2h`, of a shell's text too; None without one."""
    words = [part for word in argv for part in word.split()]
    for at, word in enumerate(words):
        if word.rpartition("/")[2] in ("timeout", "gtimeout"):
            values = [w for before, w in pairwise(words[at:]) if before not in _TIMEOUT_VALUES]
            span = next((w for w in values if not w.startswith("-")), "")
            return f"timeout {span}" if _SPAN.fullmatch(span) else None
    return None


def at_time_limit(argv: Sequence[str], exit_status: int | None) -> str | None:
    """Return the command's own time limit if that ended it: timeout(1) then exits with 124, or with 137
    (`-k`)."""
    found = time_limit(argv) if exit_status in (124, 137) else None
    return f"its own `{found}` ended it (status {exit_status})" if found else None


def python_letters(words: Sequence[str]) -> str:
    """Return the options of Python itself among the words behind it: one letter each, up to its script."""
    found, skip = "", False
    for word in words:
        if skip:
            skip = False
        elif len(word) < 2 or word[0] != "-" or word.startswith("--"):
            return found
        else:
            for position, letter in enumerate(word[1:], 1):
                found += letter
                if letter in _WITH_VALUE:
                    skip = position == len(word) - 1
                    break
            if letter in "cm":
                return found
    return found
