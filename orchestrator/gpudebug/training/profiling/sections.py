"""Sections: what a `with` statement enters, and the calls that are on their way."""

from __future__ import annotations

import sys
from _contextvars import ContextVar
from _functools import partial  # type: ignore[import-not-found]
from _thread import get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import memory
from gpudebug.training.profiling.state import state
from gpudebug.training.profiling.tree import NAMES, Node, Roots, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ContextManager, Iterator

    from gpudebug.training.profiling.memory import Reading

# Thirty years: what exceeds it was counted in another unit, and would outgrow what the report may say.
_LONGEST = 1e9
_ROUNDS = 101

# By thread: the call that is innermost in it. No context variable: CPython 3.11 crashes where a collection
# begins while one is set, and a finalizer sets it too.
_tops: dict[int, Entry | None] = {}
# In an event loop: the innermost call of this context, that is of this task.
_innermost: ContextVar[Entry | None] = ContextVar("gpudebug_innermost", default=None)
# Calls that lie on no thread's stack: of an event loop's tasks, and of generators that end in another order.
_loose: set[Entry] = set()
# Says whether an event loop runs in this thread, or (the module, until it is seen) whether one could.
_running: Callable[[], Any] = partial(sys.modules.get, "asyncio.events")


class NamedSection:
    """What `with` is given. It keeps nothing of a call: threads, tasks and places share it, open or not."""

    __slots__ = ("name", "track_memory")

    def __init__(self, name: str, track_memory: bool = False) -> None:
        self.name = name
        self.track_memory = track_memory

    def __reduce__(self) -> tuple[type[NamedSection], tuple[str, bool]]:
        return NamedSection, (self.name, self.track_memory)

    def __repr__(self) -> str:
        return f"<section {self.name!r}>"

    def __enter__(self) -> None:
        if not state.on:
            return
        if state.thorough or self.track_memory or _running() is not None:
            _begin(self)
            return
        entry = Entry()
        entry.section = self
        entry.ident = ident = get_ident()
        entry.before = around = _tops.get(ident)
        entry.node = (registry.roots[ident] if around is None else around.node).children[self.name]
        _tops[ident] = entry
        entry.start = clock()

    def __exit__(self, kind: type | None, value: object, trace: object) -> None:
        end = clock()
        ident = get_ident()
        entry = _tops.get(ident)
        if entry is None or entry.section is not self or _loose or state.thorough or self.track_memory:
            if entry is not None or _loose:
                _end(_begun(self), end, kind)
            return
        _tops[ident] = entry.before
        pending = entry.node.pending
        pending.append(end - entry.start)
        if kind is not None or len(pending) > state.limit:
            entry.node.look(kind)


class Entry:
    """One call on its way: `before` is what was innermost before it."""

    # Set one by one: an __init__ would cost as much as half of the rest.
    __slots__ = ("before", "ident", "memory", "node", "section", "start")
    before: Entry | None
    ident: int
    memory: Reading
    node: Node
    section: NamedSection
    start: int


def _begin(section: NamedSection) -> None:
    """Begin a call in an event loop, or one of which more is asked than its time."""
    in_loop = _loop_runs()
    if state.sync is not None:
        state.sync()
    entry = Entry()
    entry.section = section
    entry.ident = ident = get_ident()
    entry.node = _here(ident, in_loop).children[section.name]
    if in_loop:
        entry.before = _innermost.get()
        _loose.add(entry)
        _innermost.set(entry)
    else:
        entry.before = _tops.get(ident)
        _tops[ident] = entry
    if section.track_memory or state.track_memory:
        entry.memory = memory.read()
    entry.start = clock()


def _loop_runs() -> bool:
    global _running  # noqa: PLW0603 - asked at each entry, and no way is cheaper
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    if running is None:
        return False
    _running = running
    return running() is not None


def _here(ident: int, in_loop: bool) -> Node:
    """Return the innermost open section of a thread, or in an event loop of its task."""
    around = _innermost.get() if in_loop else None
    # A context may be copied into another thread, which has a place of its own.
    if around is None or around.ident != ident:
        around = _tops.get(ident)
    return registry.roots[ident] if around is None else around.node


def _begun(section: NamedSection) -> Entry | None:
    """Return the call of a section that ends now; None if it began while profiling was off."""
    ident = get_ident()
    for entry in _chain(_innermost.get()):
        if entry.section is section and entry in _loose:
            return entry
    for entry in _chain(_tops.get(ident)):
        if entry.section is section:
            return entry
    # An event loop may end a generator in another context than the one that it began in.
    own = [entry for entry in list(_loose) if entry.section is section and entry.ident == ident]
    return max(own, key=_start, default=None)


def _chain(entry: Entry | None) -> Iterator[Entry]:
    while entry is not None:
        yield entry
        entry = entry.before


def _start(entry: Entry) -> int:
    return getattr(entry, "start", 0)  # one that begins right now has none yet


def _end(entry: Entry | None, end: int, kind: type | None) -> None:
    """End a call that is perhaps not the innermost one, or of which more is asked than its time."""
    if entry is None:
        return
    try:
        if state.sync is not None and kind is None:
            state.sync()
            end = clock()
    finally:
        _leave(entry)
    if state.events is not None:
        state.events.append((entry.node.name, entry.start, end - entry.start, entry.ident))
    if hasattr(entry, "memory"):
        entry.node.peaks(*memory.grown(entry.memory, memory.read()))
    entry.node.pending.append(end - entry.start)
    entry.node.look(kind)


def _leave(entry: Entry) -> None:
    """Restore what was innermost before.

    Generators may end a section before one that was entered later: that one is then open beside the tree,
    keeps its own duration, and restores nothing.
    """
    if entry in _loose:
        _loose.discard(entry)
        if any(above is entry for above in _chain(_innermost.get())):
            _innermost.set(entry.before)
        # A task that was begun in this call may hold it for long.
        entry.before = None
        return
    for above in _chain(_tops.get(entry.ident)):
        if above is entry:
            break
        _loose.add(above)
    _tops[entry.ident] = entry.before


class _Nothing:
    """What `with` is given while profiling is off."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        pass


_NOTHING = _Nothing()
_named: dict[str, NamedSection] = {}


def section(name: str) -> NamedSection:
    """Return the section of this name, to be entered as often as you like."""
    name = str(name)
    if name not in _named and len(_named) >= NAMES:
        return NamedSection(name)
    return _named.setdefault(name, NamedSection(name))


def profile_section(name: str) -> ContextManager[None]:
    """Time what the `with` statement encloses, under `name`; costs next to nothing until enabled."""
    if not state.on:
        return _NOTHING
    try:
        return _named[name]
    except (KeyError, TypeError):
        return section(name)


def profile(name: str, track_memory: bool = False) -> ContextManager[None]:
    """As `profile_section`, with memory looked at before and after where `track_memory` is true.

    The report's peaks are what a call used above its beginning: resident memory at its end, and what PyTorch
    had allocated on its current GPU at most (where the call raised the process's peak, else at its end). The
    largest of all calls counts, and a section's is at least that of the sections in it.
    """
    if track_memory and state.on:
        return NamedSection(str(name), True)
    return profile_section(name)


def record_timing(name: str, seconds: float) -> None:
    """Count in a duration that was measured elsewhere, as a section inside the innermost open one.

    Does nothing while profiling is off. ValueError for a negative or undefined duration, or one above
    30 years, TypeError for what is no number; if only a launcher enabled profiling these are noted in the
    report instead.
    """
    if not state.on:
        return
    try:
        duration = float(seconds)
        if not 0.0 <= duration < _LONGEST:
            raise ValueError(f"record_timing({name!r}) takes 0 to 1e9 seconds, not {duration!r}")
    except (TypeError, ValueError, OverflowError) as e:
        if state.asked_by_code:
            raise
        state.note(f"a duration was refused: {e}")
        return
    nanoseconds, ident = round(duration * 1e9), get_ident()
    node = _here(ident, _loop_runs()).children[str(name)]
    if state.events is not None:
        state.events.append((node.name, clock() - nanoseconds, nanoseconds, ident))
    node.pending.append(nanoseconds + state.bias)
    node.look(None)


def _open() -> list[Entry]:
    stacks = [list(_chain(top))[::-1] for top in list(_tops.values())]
    return [entry for stack in stacks for entry in stack] + sorted(_loose, key=_start)


def names_open() -> list[str]:
    """Return the names of the sections that are open now, outermost first."""
    return list(dict.fromkeys(entry.node.name for entry in _open()))


def restart_open(now: int) -> None:
    """Count what is open from now on."""
    for entry in _open():
        entry.start = now


def after_fork() -> None:
    """Forget, in a forked child, what other threads had open; here only the calling one lives on."""
    ident = get_ident()
    for other in [thread for thread in _tops if thread != ident]:
        del _tops[other]
    _loose.difference_update([entry for entry in _loose if entry.ident != ident])


def calibrate() -> None:
    """Set what an empty section takes itself for, which the report takes off, and what one costs besides.

    Takes a quarter of a millisecond, once; nothing of it lies in the tree.
    """
    global _running
    if state.calibrated:
        return
    state.calibrated = True
    options = state.on, state.thorough, registry.roots, _running
    ident, empty, whole = get_ident(), NamedSection(""), []
    around = _tops.pop(ident, None)
    registry.roots = Roots()
    node = registry.roots[ident].children[""] = Node("", registry.roots[ident])
    state.on, state.thorough, _running = True, False, partial({}.get, None)
    try:
        for _ in range(_ROUNDS):
            start = clock()
            with empty:
                pass
            whole.append(clock() - start)
    finally:
        state.on, state.thorough, registry.roots, _running = options
        _tops[ident] = around
    state.bias = sorted(node.pending)[_ROUNDS // 2]
    state.cost = max(sorted(whole)[_ROUNDS // 2] - state.bias, 0)
