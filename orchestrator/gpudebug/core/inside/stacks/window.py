"""What the lines of a run saw -> the stacks of its window, few enough for evidence.json."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpudebug.core.command.program import LITTLE, TIMES, RunProcess, programs
from gpudebug.core.inside.probe.processes import ProcessKey
from gpudebug.core.inside.stacks.lines import Stack, StackLine, StacksRecord
from gpudebug.core.records import Stacks, StacksEvidence, Window

# Of evidence.json, in characters, and of stacks in it.
LARGEST_TRAINING, LARGEST_WORKERS = 14_000, 6_000
MOST_STACKS = 100
ELSEWHERE = "the main thread only waits: the steps are made in another thread or process"
_STEP_S = 20e-6
"""CPU seconds that no step makes do with: one that sleeps and sometimes prints takes 30 us (CPython 3.11)."""
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
    steps_per_s: float | None = None,
) -> StacksEvidence | None:
    """Return the stacks of the window, of the whole run if there is none; None if nothing was seen in it.

    Of a line that lies in it partly, that part of its time counts. Where no thread trains with PyTorch the
    main thread is what trains. `main` is the training process:
    without it, or if that reported none, the process that was watched longest. `scrub` takes secrets out of
    lines of source, `seen` are the processes below the command. A main thread that does not even run often
    enough for `steps_per_s` is not what trains: a note says so, and its stacks are left out.
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
    own, notes = [(o, s) for o, s in training if o.process == main], record.notes
    if steps_per_s and any(o.of == "main" for o, _ in own) and _cpu(own) < _STEP_S * steps_per_s * _time(own):
        own, notes = [], (*notes, ELSEWHERE)
    found = StacksEvidence(
        training=_merged(own, LARGEST_TRAINING, scrub),
        workers=_merged(workers, LARGEST_WORKERS, scrub),
        notes=notes,
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
    that was there first, of all that did something: what it starts works for it. If that waits in one call
    all the time, those of the busiest process that reported: a pool's, to which it gave the training."""
    by_process: dict[ProcessKey, list[tuple[StackLine, float]]] = {}
    for one, share in parts:
        by_process.setdefault(one.process, []).append((one, share))
    main = _main_process(parts, seen)
    busiest = max(by_process, key=lambda process: _cpu(by_process[process]), default=main)
    if main is not None and busiest is not None and _waits_in_one_call(by_process[main]):
        used = _cpu(by_process[main])
        if used <= LITTLE * _time(by_process[main]) and _cpu(by_process[busiest]) >= TIMES * used:
            main = busiest
    return by_process.get(main, []) if main is not None else []


def _main_process(parts: Sequence[tuple[StackLine, float]], seen: Sequence[RunProcess]) -> ProcessKey | None:
    known = {one.pid for one in seen}
    if any(one.process.pid in known for one, _ in parts):
        reported = {one.process.pid: one.process for one, _ in parts}
        return next((reported[one.pid] for one in programs(seen) if one.pid in reported), None)
    watched: dict[ProcessKey, float] = {}
    for one, share in parts:
        watched[one.process] = watched.get(one.process, 0.0) + share * one.seconds
    longest = max(watched.values(), default=0.0)
    began = {
        one.process: one.start_s for one, _ in reversed(parts) if watched[one.process] >= _WORKS * longest
    }
    return min(began, key=lambda process: began[process], default=None)


def _time(parts: Sequence[tuple[StackLine, float]]) -> float:
    return math.fsum(share * one.seconds for one, share in parts)


def _cpu(parts: Sequence[tuple[StackLine, float]]) -> float:
    return math.fsum(share * one.cpu_s for one, share in parts)


def _waits_in_one_call(parts: Sequence[tuple[StackLine, float]]) -> bool:
    """Tell whether all its stacks are parts of one: it never came back from where it waits."""
    stacks = {tuple(f for f in p.frames if not f.startswith(_KERNEL)) for one, _ in parts for p in one.places}
    longest = max(stacks, key=len, default=())
    return all(stack == longest[: len(stack)] for stack in stacks)


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
