"""What the lines of a run saw -> the stacks of its window, few enough for evidence.json."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpudebug.core.command.program import RunProcess, programs
from gpudebug.core.inside.probe.processes import ProcessKey, key_of, read_line
from gpudebug.core.records import Stacks, StacksEvidence, Window

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


# Of evidence.json, in characters, and of stacks in it.
LARGEST_TRAINING, LARGEST_WORKERS = 14_000, 6_000
MOST_STACKS = 100
# A process that was seen at work for less than this part of the longest one is a launcher.
_WORKS = 0.2
# Parts of the time: stacks of less are shortened, from the first on that makes all of them fit.
_PARTS = tuple(0.0005 * 1.6**step for step in range(12))
_KERNEL = "(kernel):"
# What indented JSON adds to a stack, to a frame of it, to a frame's name and to a line of source.
_STACK, _FRAME, _NAME, _CODE = 75, 10, 8, 24


def stacks_evidence(
    record: StacksRecord | None,
    window: Window | None,
    main: ProcessKey | None = None,
    scrub: Callable[[str], str] = str,
    seen: Sequence[RunProcess] = (),
) -> StacksEvidence | None:
    """Return the stacks of the window, of the whole run if there is none; None if nothing was seen in it.

    Of a line that lies in it partly, that part of its time counts. Where no thread trains with PyTorch the
    main thread is what trains. `main` is the training process:
    without it, or if that reported none, the process that was watched longest. `scrub` takes secrets out of
    lines of source, `seen` are the processes below the command.
    """
    if record is None:
        return None
    bounds = (window.start_s, window.end_s) if window else (-math.inf, math.inf)
    parts = [(one, share) for one in record.lines if (share := _inside(one, *bounds))]
    training = [(one, share) for one, share in parts if one.of == "training"]
    if not training:
        training = _of_program([(one, share) for one, share in parts if one.of == "main"], seen)
    watched: dict[ProcessKey, float] = {}
    for one, share in training:
        watched[one.process] = watched.get(one.process, 0.0) + share * one.seconds
    if main not in watched:
        main = max(watched, key=lambda process: watched[process], default=None)
    workers = [(one, share) for one, share in parts if one.of == "workers"]
    found = StacksEvidence(
        training=_merged([(o, s) for o, s in training if o.process == main], LARGEST_TRAINING, scrub),
        workers=_merged(workers, LARGEST_WORKERS, scrub),
        notes=record.notes,
    )
    return found if found.training or found.workers or found.notes else None


def stacks_of(
    record: StacksRecord,
    process: ProcessKey,
    bounds: tuple[float, float] | None,
    moved_s: float = 0.0,
    scrub: Callable[[str], str] = str,
) -> Stacks | None:
    """Return the stacks of one process's training thread between the bounds, of its whole time without them.

    Its lines are `moved_s` earlier than they say: a process of another host has another clock.
    """
    start, end = bounds or (-math.inf, math.inf)
    own = [one for one in record.lines if one.process == process and one.of == "training"]
    parts = [(one, share) for one in own if (share := _inside(one, start + moved_s, end + moved_s))]
    return _merged(parts, LARGEST_TRAINING, scrub)


def start_up_stacks(
    record: StacksRecord, first_step_s: float, scrub: Callable[[str], str] = str
) -> Stacks | None:
    """Return what the process that trains did before its first step: its main thread until PyTorch shows a
    sign of training in it (a batch that is fetched), then the thread of that. It is the one that was watched
    longest since; None if it was not watched before."""
    after: dict[ProcessKey, float] = defaultdict(float)
    for one in record.lines:
        if one.of != "workers":
            after[one.process] += _inside(one, first_step_s, math.inf) * one.seconds
    main = max(after, key=lambda process: after[process], default=None)
    own = [one for one in record.lines if one.process == main and one.of != "workers"]
    parts = [(one, share) for one in own if (share := _inside(one, -math.inf, first_step_s))]
    return _merged(parts, LARGEST_TRAINING, scrub)


def watched_span(
    record: StacksRecord, process: ProcessKey, bounds: tuple[float, float], few: int
) -> tuple[float, float] | None:
    """When within the bounds a process's training thread was watched, from the first look to the last; None
    of fewer than `few` looks."""
    own = [one for one in record.lines if one.process == process and one.of == "training"]
    parts = [(one, share) for one in own if (share := _inside(one, *bounds))]
    if not parts or math.fsum(share * one.samples for one, share in parts) < few:
        return None
    start_s = min(one.start_s for one, _ in parts)
    return max(bounds[0], start_s), min(bounds[1], max(one.end_s for one, _ in parts))


def _of_program(
    parts: list[tuple[StackLine, float]], seen: Sequence[RunProcess]
) -> list[tuple[StackLine, float]]:
    """Those of the first program that reported any; of processes that nothing is known of, those of the one
    that was there first, of all that did something: what it starts works for it."""
    known = {one.pid for one in seen}
    if any(one.process.pid in known for one, _ in parts):
        reported = {one.process.pid for one, _ in parts}
        main = next((one.pid for one in programs(seen) if one.pid in reported), None)
        return [(one, share) for one, share in parts if one.process.pid == main]
    watched: dict[ProcessKey, float] = {}
    for one, share in parts:
        watched[one.process] = watched.get(one.process, 0.0) + share * one.seconds
    longest = max(watched.values(), default=0.0)
    began = {
        one.process: one.start_s for one, _ in reversed(parts) if watched[one.process] >= _WORKS * longest
    }
    first = min(began, key=lambda process: began[process], default=None)
    return [(one, share) for one, share in parts if one.process == first]


def _inside(one: StackLine, start_s: float, end_s: float) -> float:
    """Return the share of a line's time that lies between the bounds."""
    length = one.end_s - one.start_s
    overlap = min(one.end_s, end_s) - max(one.start_s, start_s)
    return min(1.0, max(0.0, overlap) / length) if length > 0 else 0.0


def _merged(
    parts: Sequence[tuple[StackLine, float]], largest: int, scrub: Callable[[str], str]
) -> Stacks | None:
    places: dict[Stack, list[float]] = {}
    code: dict[tuple[str, int], str] = {}
    packaged: set[str] = set()
    for one, part in parts:
        for place, (seconds, cpu_s) in one.places.items():
            entry = places.setdefault(place, [0.0, 0.0])
            entry[0] += part * seconds
            entry[1] += part * cpu_s
        code.update(one.code)
        packaged.update(one.packaged)
    if not parts:
        return None
    kept = _fitting(_shortened(places, code, largest), code, largest)
    frames = list(dict.fromkeys(frame for place, _ in kept for frame in place.frames))
    numbers = {frame: number for number, frame in enumerate(frames)}
    lines = dict.fromkeys((place.frames[place.user], place.line) for place, _ in kept if place.user >= 0)
    return Stacks(
        seconds=round(math.fsum(part * one.seconds for one, part in parts), 3),
        cpu_s=round(math.fsum(part * one.cpu_s for one, part in parts), 3),
        samples=round(math.fsum(part * one.samples for one, part in parts)),
        frames=tuple(frames),
        stacks=tuple(
            (p.phase, tuple(numbers[f] for f in p.frames), p.line, round(seconds, 3), round(cpu_s, 3))
            for p, (seconds, cpu_s) in kept
        ),
        code={f"{frame}:{line}": scrub(code.get((frame, line), "")) for frame, line in lines},
        starved_s=_starved(parts),
        packaged=tuple(numbers[frame] for frame in frames if frame in packaged),
    )


def _starved(parts: Sequence[tuple[StackLine, float]]) -> float | None:
    known = [part * one.starved_s for one, part in parts if one.starved_s is not None]
    return round(math.fsum(known), 3) if known else None


def _shortened(
    places: Mapping[Stack, Sequence[float]], code: Mapping[tuple[str, int], str], largest: int
) -> dict[Stack, list[float]]:
    """The stacks with innermost frames left out until they fit: first of those with the least time, each no
    further than needed, so that what many short stacks have in common stays with all of their time."""
    total = math.fsum(spent[0] for spent in places.values())
    found = {place: list(spent) for place, spent in places.items()}
    for part in (*_PARTS, math.inf):
        if _size(found, code) <= largest and len(found) <= MOST_STACKS:
            break
        found = _without(found, part * total)
    return found


def _without(places: Mapping[Stack, Sequence[float]], least: float) -> dict[Stack, list[float]]:
    """Stacks of less than `least` seconds end a frame further out, again and again, down to the user's."""
    depths: defaultdict[int, dict[Stack, list[float]]] = defaultdict(dict)
    for place, spent in places.items():
        depths[len(place.frames)][place] = list(spent)
    kept: dict[Stack, list[float]] = {}
    for depth in range(max(depths, default=0), -1, -1):
        for place, spent in depths[depth].items():
            outer = _outer(place) if spent[0] < least else None
            if outer is None:
                kept[place] = spent
                continue
            entry = depths[depth - 1].setdefault(outer, [0.0, 0.0])
            entry[0] += spent[0]
            entry[1] += spent[1]
    return kept


def _outer(place: Stack) -> Stack | None:
    """The stack one frame shorter, None at the user's frame. What the kernel waits for is left out last."""
    frames = place.frames
    at = len(frames) - 1
    if at > max(place.user, 0) + 1 and frames[at].startswith(_KERNEL):
        at -= 1
    return place._replace(frames=frames[:at] + frames[at + 1 :]) if at > max(place.user, 0) else None


def _size(places: Iterable[Stack], code: Mapping[tuple[str, int], str]) -> int:
    """Return what they take in evidence.json, in characters."""
    names = {frame for place in places for frame in place.frames}
    lines = {(place.frames[place.user], place.line) for place in places if place.user >= 0}
    return (
        sum(_STACK + _FRAME * len(place.frames) for place in places)
        + sum(len(name) + _NAME for name in names)
        + sum(len(line[0]) + len(code.get(line, "")) + _CODE for line in lines)
    )


def _fitting(
    places: Mapping[Stack, Sequence[float]], code: Mapping[tuple[str, int], str], largest: int
) -> list[tuple[Stack, Sequence[float]]]:
    """Return those with the most time, as many as fit into so many characters of an indented JSON file."""
    kept: list[tuple[Stack, Sequence[float]]] = []
    names: set[str] = set()
    lines: set[tuple[str, int] | None] = set()
    size = 0
    for place, spent in sorted(places.items(), key=lambda one: (-one[1][0], one[0])):
        frames = set(place.frames) - names
        size += _STACK + _FRAME * len(place.frames) + sum(len(name) + _NAME for name in frames)
        line = (place.frames[place.user], place.line) if place.user >= 0 else None
        if line is not None and line not in lines:
            size += len(line[0]) + len(code.get(line, "")) + _CODE
        if size > largest or len(kept) >= MOST_STACKS:
            break
        names |= frames
        lines.add(line)
        kept.append((place, spent))
    return kept
