"""Stacks of a thread -> the share of its time that code of some kind takes, and where most of it is.

Agents write files of causes, too, and the texts: each match is bounded by the length that it is made on, and
all together by `limit`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.errors import CatalogueError
from gpudebug.core.lazy import regex
from gpudebug.core.records import Stacks
from gpudebug.core.text.expressions import Unbounded, bounded

LEAST = 20
"""Characters on which every expression of a cause is quick."""

_SHORT = 50
_WINDOW = 200
_LONGEST = 20 * _WINDOW
_MOST_SECONDS = 20.0
_SPAN_S = 2 * _MOST_SECONDS


class CatalogueExpression:
    """An expression of the catalogue; letter case does not count."""

    def __init__(self, expression: str) -> None:
        self._compiled = re.compile(expression, re.IGNORECASE)
        self._window: int | None = None

    def search(self, text: str) -> bool:
        """Tell whether it is in the text; a long one is searched in parts that overlap by half."""
        width = self._width(text)
        starts = range(0, max(min(len(text), _LONGEST) - width // 2, 1), width // 2)
        return any(self._found(text[start : start + width]) for start in starts)

    def fullmatch(self, text: str) -> bool:
        return len(text) <= self._width(text) and self._compiled.fullmatch(text) is not None

    def _width(self, text: str) -> int:
        if len(text) <= _SHORT:
            return _SHORT
        if self._window is None:
            try:
                # On half of what is bounded it takes a fraction of the time.
                longest = bounded(self._compiled.pattern, least=1).longest // 2
            except Unbounded:
                longest = _SHORT
            self._window = min(max(longest, _SHORT), _WINDOW)
        return self._window

    def _found(self, text: str) -> bool:
        start = _clock.read()
        found = self._compiled.search(text) is not None
        _clock.took(start, self._compiled.pattern)
        return found


class _Clock:
    """What all expressions together took of late: each alone may be quick, and causes are many."""

    def __init__(self) -> None:
        self.read: Callable[[], float] = float
        self._since = self._spent = 0.0

    def took(self, start: float, expression: str) -> None:
        end = self.read()
        if end - self._since > _SPAN_S:
            self._since, self._spent = start, 0.0
        self._spent += end - start
        if self._spent > _MOST_SECONDS:
            raise CatalogueError(
                f"the expression {expression!r} takes too long",
                file="hypotheses",
                next="write it with fewer repeats",
            )


_clock = _Clock()


def limit(now: Callable[[], float]) -> None:
    """From here on expressions that take too long, by this clock, raise CatalogueError."""
    _clock.read = now


@lru_cache(maxsize=8192)
def pattern(expression: str) -> CatalogueExpression:
    return CatalogueExpression(expression)


_PYTORCH = regex(
    r"^(?:.*/)?(?:torch|nn|modules|optim|autograd|data|_utils|amp|cuda|_dynamo|_inductor|_functorch|parallel"
    r"|distributed|distributions)/\w+\.py:"
)
"""Files of PyTorch by their last folder; asked of libraries' frames only."""
_COMPILER = regex(r"^(?:.*/)?(?:_src|interpreters|eager|polymorphic_function)/\w+\.py:(?=\S+$)")
"""Files of JAX and TensorFlow that trace, lower and compile."""
_WAITS = frozenset(f"(kernel):{what}" for what in ("sleep", "disk", "page", "socket"))
_SLEEP = "(kernel):sleep"
_IMPORTLIB = ("<frozen importlib._bootstrap>:", "<frozen importlib._bootstrap_external>:")
_SLEEPS = regex(r"\bsleep\(")
_GETS = regex(
    r"[:._](?:read|load|fetch|get|pull|download|recv|receive|next|iter|getitems?|open|seek|request|query|retrieve)"
    r"(?:[A-Z_]\w*)?$"
)
"""Functions whose name says that they bring something."""
_WITHIN = {"env": "other"}
"""A phase that is a part of another one."""
LONGEST_SOURCE = 60
"""Characters of a line of source that are shown."""


class CodeLine(NamedTuple):
    """Where time goes: `frame` is `folder/file.py:function`, `state` running or waiting, the more of both."""

    frame: str
    line: int | None
    source: str | None
    state: str

    @property
    def named(self) -> str:
        """``resize, train.py:87``."""
        file, _, function = self.frame.rpartition(":")
        name = file.rsplit("/", 1)[-1]
        return f"{function}, {name}:{self.line}" if self.line else f"{function}, {name}"

    def __str__(self) -> str:
        """``train.py:87 resize (running): `img.resize(size)` ``."""
        file, _, function = self.frame.rpartition(":")
        name = file.rsplit("/", 1)[-1]
        at = f"{name}:{self.line}" if self.line else name
        shown = (
            self.source
            if self.source is None or len(self.source) <= LONGEST_SOURCE
            else self.source[:LONGEST_SOURCE] + "…"
        )
        return f"{at} {function} ({self.state})" + (f": `{shown}`" if shown else "")


class Taken(NamedTuple):
    """A share of the time (0 to 1), the place with the most of it, and the part of it that this place has."""

    value: float
    place: CodeLine | None = None
    part: float = 1.0


class SampledStack(NamedTuple):
    """One stack with its frames as text; seconds. `own` is the place in `frames` of the line's frame,
    `packaged` whether that is a framework's."""

    phase: str
    frames: tuple[str, ...]
    line: int
    seconds: float
    cpu_s: float
    own: int | None
    source: str | None
    packaged: bool = False

    @property
    def spot(self) -> tuple[str, int | None, str | None]:
        """The frame of its line, the line and its source; the innermost frame if the line is unknown."""
        if self.own is None:
            return self.frames[-1] if self.frames else "?:?", None, None
        return self.frames[self.own], self.line, self.source

    @property
    def place(self) -> CodeLine:
        return CodeLine(*self.spot, "running" if self.cpu_s >= self.seconds / 2 else "waiting")

    def within(self, state: str | None) -> float:
        """Its seconds in a state."""
        if state is None:
            return self.seconds
        cpu_s = min(self.cpu_s, self.seconds)
        return cpu_s if state == "running" else self.seconds - cpu_s


class _Same:
    """Stacks as a key: equal to nothing but itself."""

    def __init__(self, stacks: Stacks) -> None:
        self.stacks = stacks

    def __hash__(self) -> int:
        return id(self.stacks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.stacks is other.stacks


def seen(stacks: Stacks) -> tuple[SampledStack, ...]:
    """Return the stacks that show what a program does; without those that import, which is its start.

    A program all of which runs below an import (`python -c 'import train'`) is shown by these.
    """
    return _seen(_Same(stacks))


@lru_cache(maxsize=8)
def _seen(key: _Same) -> tuple[SampledStack, ...]:
    """Each term of the catalogue asks for the same ones."""
    every = tuple(_each(key.stacks))
    working = tuple(one for one in every if not _imports(one))
    return working if sum(one.seconds for one in working) >= key.stacks.seconds / 2 else every


def importing(stacks: Stacks) -> float:
    """Return the share of the watched time that imports take."""
    took = sum(one.seconds for one in _each(stacks) if _imports(one))
    return min(1.0, took / stacks.seconds) if stacks.seconds > 0 else 0.0


def _imports(one: SampledStack) -> bool:
    return any(frame.startswith(_IMPORTLIB) for frame in one.frames)


def _each(stacks: Stacks) -> Iterator[SampledStack]:
    of_packages = {stacks.frames[i] for i in stacks.packaged if 0 <= i < len(stacks.frames)}
    for phase, indices, line, seconds, cpu_s in stacks.stacks:
        frames = tuple(stacks.frames[i] for i in indices if 0 <= i < len(stacks.frames))
        places = range(len(frames) - 1, -1, -1)
        own = next((i for i in places if f"{frames[i]}:{line}" in stacks.code), None)
        source = stacks.code.get(f"{frames[own]}:{line}") if own is not None else None
        packaged = own is not None and frames[own] in of_packages
        yield SampledStack(phase, frames, line, seconds, cpu_s, own, source, packaged)


class StackTerm(NamedTuple):
    """Which stacks count: those that match either expression, in a phase and a state where these are given,
    without those that match `unless` too; `other` has `env` in it. Letter case does not count."""

    stack: str | None = None
    code: str | None = None
    phase: str | None = None
    state: str | None = None
    unless: str | None = None

    def sources(self, stacks: Stacks) -> frozenset[str | None]:
        """Return the lines' sources that match."""
        return _matching(self.code, stacks.code.values())

    def counts(self, stacks: Stacks) -> Iterator[tuple[SampledStack, float]]:
        """Yield the stacks that count, with their seconds in the state."""
        frames, sources = _matching(self.stack, stacks.frames), self.sources(stacks)
        but, but_sources = (_matching(self.unless, texts) for texts in (stacks.frames, stacks.code.values()))
        for one in seen(stacks):
            if self.phase is not None and self.phase not in (one.phase, _WITHIN.get(one.phase)):
                continue
            matched = one.source in sources or not frames.isdisjoint(one.frames)
            if not matched or one.source in but_sources or not but.isdisjoint(one.frames):
                continue
            seconds = one.within(self.state)
            if seconds > 0:
                yield one, seconds


def share(stacks: Stacks, **wanted: str | None) -> Taken:
    """Return what of the watched time stacks take that count by a term of these fields, and where most is."""
    term = StackTerm(**wanted)
    frames, sources, state = _matching(term.stack, stacks.frames), term.sources(stacks), term.state
    spent: defaultdict[tuple[str, int | None, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for one, seconds in term.counts(stacks):
        sums = spent[one.spot if one.source in sources else _spot(one, frames)]
        sums[0], sums[1], sums[2] = sums[0] + seconds, sums[1] + one.seconds, sums[2] + one.cpu_s
    if not spent or stacks.seconds <= 0:
        return Taken(0.0)
    total, most = sum(sums[0] for sums in spent.values()), max(spent, key=lambda spot: spent[spot][0])
    taken, seconds, cpu_s = spent[most]
    place = CodeLine(*most, state or ("running" if cpu_s >= seconds / 2 else "waiting"))
    return Taken(min(1.0, total / stacks.seconds), place, taken / total)


def _spot(one: SampledStack, frames: frozenset[str | None]) -> tuple[str, int | None, str | None]:
    """Where a stack is that frames match: the innermost of them, in a library the line that called it."""
    index = max(i for i, frame in enumerate(one.frames) if frame in frames)
    if one.own is None or index >= one.own:
        return one.spot
    return one.frames[index], None, None


def _matching(expression: str | None, texts: Iterable[str]) -> frozenset[str | None]:
    """Return those of the texts that an expression is found in; none without one."""
    return frozenset() if expression is None else _found_in(expression, tuple(texts))


@lru_cache(maxsize=1024)
def _found_in(expression: str, texts: tuple[str, ...]) -> frozenset[str | None]:
    """One diagnosis asks this of the same stacks for signs, for what is exposed, and for each hypothesis."""
    search = pattern(expression).search
    return frozenset(text for text in texts if search(_known_by(text)))


def _known_by(text: str) -> str:
    """Return a frame as an expression sees it: inside a compiler's own files a function's name means another
    thing than in a program (`compile_or_get_cached`, `_cpp_pjit`), so that only the file counts."""
    inside = _COMPILER.match(text)
    return inside.group() if inside else text


def in_pytorch(frame: str) -> bool:
    """Tell whether a library's frame lies in PyTorch's files."""
    return _PYTORCH.match(frame) is not None


def in_compiler(frame: str) -> bool:
    """Tell whether a frame lies in files of JAX or TensorFlow that trace, lower, compile and dispatch."""
    return _COMPILER.match(frame) is not None


def hottest(
    stacks: Stacks, *, phases: Sequence[str] | None = None, state: str | None = None
) -> tuple[float, CodeLine | None]:
    """Return the largest share of one function of the user's own code, without what it has PyTorch do.

    An operator that is called directly counts: it looks like Python's own work.
    """
    functions: defaultdict[str, float] = defaultdict(float)
    places: dict[str, tuple[float, CodeLine]] = {}
    for one in seen(stacks):
        if one.own is None or one.packaged or (phases is not None and one.phase not in phases):
            continue
        if any(_PYTORCH.match(frame) for frame in one.frames[one.own + 1 :]):
            continue
        frame, seconds = one.frames[one.own], one.within(state)
        functions[frame] += seconds
        if seconds > places.get(frame, (0.0, None))[0]:
            places[frame] = (seconds, one.place)
    if not places or stacks.seconds <= 0:
        return 0.0, None
    most = max(places, key=lambda frame: functions[frame])
    return min(1.0, functions[most] / stacks.seconds), places[most][1]


def by_function(stacks: Stacks) -> dict[str, float]:
    """Return the share of the watched time in lines of each function of the program; {} of none watched."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for one in seen(stacks):
        seconds[one.spot[0]] += one.seconds
    return {frame: spent / stacks.seconds for frame, spent in seconds.items()} if stacks.seconds > 0 else {}


def waits(stacks: Stacks, phase: str) -> float:
    """Return the largest share of one function of code that is no library's in which the kernel shows a wait
    for time, files or another machine: a wait for threads of the program's own is none, nor is a line that
    sleeps, but in a function that brings something."""
    functions: defaultdict[str, float] = defaultdict(float)
    for one in seen(stacks):
        if one.own is not None and one.phase == phase and one.frames[-1] in _WAITS and not _pauses(one):
            functions[one.frames[one.own]] += one.within("waiting")
    return min(1.0, max(functions.values(), default=0.0) / stacks.seconds) if stacks.seconds > 0 else 0.0


def _pauses(one: SampledStack) -> bool:
    """Whether the program itself sleeps there, and neither its function nor that one's caller brings data."""
    if one.own is None or one.frames[-1] != _SLEEP or not _SLEEPS.search(one.source or ""):
        return False
    return not any(_GETS.search(frame) for frame in one.frames[max(0, one.own - 1) : one.own + 1])


def together(found: Sequence[Stacks]) -> Stacks | None:
    """Several runs' stacks as those of one; None of none."""
    if len(found) <= 1:
        return found[0] if found else None
    frames: dict[str, int] = {}
    packaged = {s.frames[i] for s in found for i in s.packaged if 0 <= i < len(s.frames)}
    sums: dict[tuple[str, tuple[int, ...], int], list[float]] = {}
    for stacks in found:
        for phase, indices, line, seconds, cpu_s in stacks.stacks:
            names = [stacks.frames[i] for i in indices if 0 <= i < len(stacks.frames)]
            key = (phase, tuple(frames.setdefault(name, len(frames)) for name in names), line)
            entry = sums.setdefault(key, [0.0, 0.0])
            entry[0] += seconds
            entry[1] += cpu_s
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])
    return Stacks(
        seconds=sum(s.seconds for s in found),
        cpu_s=sum(s.cpu_s for s in found),
        samples=sum(s.samples for s in found),
        frames=tuple(frames),
        stacks=tuple((*key, seconds, cpu_s) for key, (seconds, cpu_s) in ordered),
        code={name: source for s in found for name, source in s.code.items()},
        starved_s=_sum([s.starved_s for s in found]),
        packaged=tuple(number for frame, number in frames.items() if frame in packaged),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
