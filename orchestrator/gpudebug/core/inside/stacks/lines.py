"""The lines of probe.jsonl -> the stacks that each process saw; every value is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpudebug.core.inside.probe.processes import ProcessKey, key_of, read_line

PHASES = frozenset({"data", "forward", "eval", "act", "backward", "optimizer", "env", "other"})
KINDS = ("training", "workers", "main")
"""Of threads that are watched: `main` is the main thread of a process that no PyTorch trains in."""
_MARK = '"stacks"'
_LONGEST_NAME, _LONGEST_CODE, _LONGEST_WHY = 240, 120, 200
_DEEPEST, _MOST_FRAMES, _MOST_LINES = 64, 8192, 20_000
_LARGEST = 2.0**53


class Stack(NamedTuple):
    """A stack: its phase, frames from the outermost in, and which of them is the user's, at which line.

    `user` is -1 and `line` 0 if no frame is.
    """

    phase: str
    frames: tuple[str, ...]
    user: int
    line: int


@dataclass(frozen=True, slots=True)
class StackLine:
    """One line of a process: what it saw from `start_s` to `end_s`, in seconds since launch.

    `places` are seconds and CPU seconds by stack, `seconds` and `cpu_s` those of all; `starved_s` is what
    the thread waited for a CPU, None if it did not say; `packaged` are frames of a framework that have lines.
    """

    process: ProcessKey
    of: str
    start_s: float
    end_s: float
    seconds: float
    cpu_s: float
    samples: int
    places: Mapping[Stack, tuple[float, float]]
    code: Mapping[tuple[str, int], str]
    starved_s: float | None = None
    packaged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StacksRecord:
    """All lines of a run in order; `notes` say why a process reported no more."""

    lines: tuple[StackLine, ...] = ()
    notes: tuple[str, ...] = ()


def read_stacks(text: str) -> StacksRecord | None:
    """Parse the stacks in the lines of probe.jsonl; None if there is none. Every value is checked."""
    values: list[StackLine] = []
    notes: dict[str, None] = {}
    for raw in text.split("\n"):
        if _MARK not in raw:
            continue
        line = read_line(raw)
        if line is None or line["kind"] != "stacks" or len(values) >= _MOST_LINES:
            continue
        if isinstance(line.get("why"), str):
            notes[f"stacks end early: {line['why'][:_LONGEST_WHY]}"] = None
        elif one := _stack_line(line):
            values.append(one)
    return StacksRecord(tuple(values), tuple(notes)) if values or notes else None


def _stack_line(line: Mapping[str, Any]) -> StackLine | None:
    start, end, t0, of = (line.get(name) for name in ("since", "t", "t0", "of"))
    total, cpu, samples = (_number(line.get(name)) for name in ("s", "cpu", "n"))
    known = _number(start), _number(end), _number(t0)
    if None in known or total is None or cpu is None or samples is None or of not in KINDS:
        return None
    begun, ended, launched = (value or 0.0 for value in known)
    frames = _frames(line.get("frames"))
    code = _sources(line.get("code"), frames)
    places: dict[Stack, tuple[float, float]] = {}
    for entry in line["stacks"] if isinstance(line.get("stacks"), list) else ():
        if found := _stack(entry, frames, code):
            place, seconds, cpu_s = found
            before = places.get(place, (0.0, 0.0))
            places[place] = before[0] + seconds, before[1] + cpu_s
    return StackLine(
        process=key_of(line),
        of=of,
        start_s=begun - launched,
        end_s=ended - launched,
        seconds=total,
        cpu_s=min(cpu, total),
        samples=int(samples),
        places=places,
        code={(frames[number], at): text for (number, at), text in code.items()},
        starved_s=_number(line.get("starved")),
        packaged=_packaged(line.get("packaged"), frames),
    )


def _frames(value: object) -> list[str]:
    names = value[:_MOST_FRAMES] if isinstance(value, list) else []
    return [name[-_LONGEST_NAME:] if isinstance(name, str) else "?" for name in names]


def _packaged(value: object, frames: Sequence[str]) -> frozenset[str]:
    numbers = value[:_MOST_FRAMES] if isinstance(value, list) else []
    return frozenset(frames[n] for n in numbers if isinstance(n, int) and 0 <= n < len(frames))


def _sources(value: object, frames: Sequence[str]) -> dict[tuple[int, int], str]:
    """By number of the frame and line."""
    found = {}
    for key, text in value.items() if isinstance(value, dict) else ():
        match = re.fullmatch(r"([0-9]{1,4}):([0-9]{1,7})", key, re.ASCII)
        if match and int(match[1]) < len(frames) and isinstance(text, str):
            found[int(match[1]), int(match[2])] = text[:_LONGEST_CODE]
    return found


def _stack(
    entry: object, frames: Sequence[str], code: Mapping[tuple[int, int], str]
) -> tuple[Stack, float, float] | None:
    if not isinstance(entry, list) or len(entry) < 5 or not isinstance(entry[1], list):
        return None
    phase, numbers, line = entry[:3]
    seconds, cpu_s = _number(entry[3]), _number(entry[4])
    if not isinstance(phase, str) or phase not in PHASES or not isinstance(line, int):
        return None
    if seconds is None or cpu_s is None:
        return None
    known = [n for n in numbers[-_DEEPEST:] if isinstance(n, int) and 0 <= n < len(frames)]
    user = next((at for at in reversed(range(len(known))) if (known[at], line) in code), -1)
    place = Stack(phase, tuple(frames[n] for n in known), user, line if user >= 0 else 0)
    return place, seconds, min(cpu_s, seconds)


def _number(value: object) -> float | None:
    """Return a finite number that is not below 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LARGEST else None
