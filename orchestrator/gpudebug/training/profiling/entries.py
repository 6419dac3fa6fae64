"""The long way of a call: one object an entry, for all that the short way of `handles` does not do.

It serves an event loop (whose tasks interleave), a handle that is entered again, elsewhere or by another
thread before it is left, memory, `sync` and events. It costs about five times the short way.
"""

from __future__ import annotations

from _contextvars import ContextVar
from _thread import get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import memory
from gpudebug.training.profiling.figures import larger
from gpudebug.training.profiling.settings import settings
from gpudebug.training.profiling.tree import present, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gpudebug.training.profiling.tree import Children, Node, ThreadTree

# In an event loop: the children of the innermost open section of this context, that is of this task.
_path: ContextVar[Children | None] = ContextVar("gpudebug_path", default=None)
# What this context has lent, the last one first: (handle, entry, those before).
_lent: ContextVar[Any] = ContextVar("gpudebug_lent", default=None)
opened: dict[int, Entry] = {}
"""All entries that are open now, in the order in which they were entered."""

_ABSENT = object()


class Entry:
    """One call on its way."""

    __slots__ = ("before", "handle", "home", "ident", "in_loop", "node", "start", "thread")

    def __init__(self, handle: Any, track_memory: bool) -> None:
        self.handle = handle
        self.ident = get_ident()
        self.thread = present()
        self.in_loop = settings.running() is not None
        if settings.sync is not None:
            settings.sync()
        self.home: Children = here()
        self.node: Node = self.home[handle.name].node
        self._go(self.node.children)
        opened[id(self)] = self
        self.before = memory.read() if track_memory or settings.track_memory else None
        self.start = clock()

    def _go(self, children: Children) -> None:
        if self.in_loop:
            _path.set(children)
        else:
            self.thread.here = children

    def close(self, end: int, kind: type | None) -> None:
        """The call is over, with an exception of this kind or none."""
        try:
            if settings.sync is not None and kind is None:
                settings.sync()
                end = clock()
        finally:
            opened.pop(id(self), None)
            if not self.in_loop:
                leave(self.thread, self.node, self.home)
            elif _path.get() is self.node.children:
                _path.set(self.home)
        if settings.events is not None:
            settings.events.append((self.node.name, self.start, end - self.start, self.ident))
        if self.before is not None:
            self._peaks(memory.grown(self.before, memory.read()))
        record(self.node, end - self.start - settings.long_bias + settings.bias, kind)

    def _peaks(self, grown: tuple[int | None, int | None]) -> None:
        figures = self.node.figures
        figures.mem_peak = larger(figures.mem_peak, grown[0])
        figures.gpu_peak = larger(figures.gpu_peak, grown[1])


def here() -> Children:
    """The children of the innermost open section of the calling thread, or in an event loop of its task."""
    inherited = _path.get() if settings.running() is not None else None
    return present().here if inherited is None else inherited


def record(node: Node, duration: int, kind: type | None) -> None:
    """Count one call in."""
    node.pending.append(max(duration, 0))
    # Closing a generator is how one that is not used up ends.
    if kind is not None and kind is not GeneratorExit:
        node.figures.errors += 1
    if len(node.pending) > node.limit:
        node.full()


def leave(thread: ThreadTree, node: Node, home: Children) -> None:
    """`node` is no longer open: what lies in it is not where the thread is.

    Generators may end a section before one that was entered later: that one is then open beside the tree,
    keeps its own duration, and restores nothing.
    """
    above: Node | None = thread.here.node
    while above is not None:
        if above is node:
            thread.here = home
            return
        above = above.parent


def lend(handle: Any, track_memory: bool = False) -> None:
    """Enter by the long way; what was lent is given back by the same context, the last one first."""
    entry = Entry(handle, track_memory) if settings.on else None
    with registry.lock:
        handle.lent += 1
    _lent.set((handle, entry, _lent.get()))


def give_back(handle: Any, end: int, kind: type | None) -> bool:
    """Leave what was lent; False if nothing was."""
    entry = _taken(handle)
    if entry is _ABSENT:
        return False
    with registry.lock:
        handle.lent -= 1
    if entry is not None:
        entry.close(end, kind)
    return True


def _taken(handle: Any) -> Any:
    link, later = _lent.get(), []  # type: Any, list[Any]
    while link is not None:
        if link[0] is handle:
            rest = link[2]
            for before in reversed(later):
                rest = (before[0], before[1], rest)
            _lent.set(rest)
            return link[1]
        later.append(link)
        link = link[2]
    return _ABSENT


def stray(handle: Any) -> Entry | None:
    """An entry of this thread that its own context never gave back: a loop may end a generator in another."""
    ident = get_ident()
    found = [entry for entry in list(opened.values()) if entry.handle is handle and entry.ident == ident]
    if not found:
        return None
    with registry.lock:
        handle.lent -= 1
    return found[-1]


def after_fork() -> None:
    """In a forked child: other threads' entries have no owner."""
    ident = get_ident()
    for key, entry in list(opened.items()):
        if entry.ident != ident:
            del opened[key]
