"""The short way of a call: two closures a section, a clock each, and no object made.

`profile_section(name)` finds the handle of the section inside the thread's innermost open one; entering it
makes it the innermost, leaving it restores the one before. Whatever is not that simple goes the long way.
"""

from __future__ import annotations

import sys
from _functools import partial  # type: ignore[import-not-found]
from _thread import get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import entries
from gpudebug.training.profiling.settings import settings
from gpudebug.training.profiling.tree import NAMES, OTHER, ThreadTree, local, present, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ContextManager


class _ForStacks(type):
    """`contextlib.ExitStack` asks the class for what a `with` statement finds in the object's slots."""

    __enter__ = property(lambda cls: lambda handle: handle.__enter__())
    __exit__ = property(lambda cls: lambda handle, *exc: handle.__exit__(*exc))


class Handle(metaclass=_ForStacks):
    """What `with` is given. Its two closures lie in slots, so that no bound method is made at each use."""

    __slots__ = ("__enter__", "__exit__", "bind", "lent", "name", "node", "pair")
    __enter__: Callable[[], None]
    __exit__: Callable[[Any, Any, Any], None]
    pair: tuple[Callable[[], None], Callable[[Any, Any, Any], None]]
    bind: Callable[[], bool] | None

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Any = None
        self.bind = None
        # Entries by the long way that are not yet left.
        self.lent = 0

    def __reduce__(self) -> Any:
        return section, (self.name,)

    def __repr__(self) -> str:
        return f"<section {self.name!r}>"


def profile_section(name: str) -> ContextManager[None]:
    """Time what the `with` statement encloses, under `name`; costs next to nothing until enabled."""
    if off:
        return NOTHING
    try:
        return local.thread.here[name]  # type: ignore[no-any-return]
    except (AttributeError, TypeError):
        # A thread's first section; or a name that is no string.
        return present().here[str(name)]  # type: ignore[no-any-return]


off = True
# Called at each entry: anything but None sends it the long way. One of these, or asyncio's own question
# whether a loop runs in this thread.
_always: Callable[[], Any] = ().__len__
_loaded: Callable[[], Any] = partial(sys.modules.get, "asyncio.events")
detour = _always
_NOWHERE = ThreadTree(0)


def make(name: str, node: Any) -> Handle:
    """A handle for one place of one thread's tree, or (`node` None) one that binds itself to its place."""
    handle = Handle(name)
    start = 0
    thread: Any = _NOWHERE
    home: Any = None
    mine: Any = None
    append: Any = None
    pending: Any = None
    if node is not None:
        thread, home, mine, pending = node.thread, node.parent.children, node.children, node.pending
        append = pending.append
        handle.node = node

    def enter() -> None:
        nonlocal start
        if start or thread.here is not home or thread.ident != get_ident() or detour() is not None:
            return _aside(handle)
        thread.here = mine
        start = clock()
        return None

    def leave(kind: Any, value: Any, trace: Any) -> None:
        nonlocal start
        end = clock()
        if handle.lent or thread.here is not mine:
            return _apart(handle, thread, node, home, end, kind)
        thread.here = home
        append(end - start)
        start = 0
        if kind is not None and kind is not GeneratorExit:
            node.figures.errors += 1
        if len(pending) > node.limit:
            node.full()
        return None

    if node is None:

        def bind() -> bool:
            """Enter at this place; False if the handle is open, or is another living thread's."""
            nonlocal thread, home, mine, append, pending, node, start
            mine_now = present()
            with registry.lock:
                if start or (thread.ident and thread is not mine_now):
                    return False
                found = mine_now.here[name].node
                if found.parent.children is not mine_now.here:
                    return False
                node, home, mine, pending = found, mine_now.here, found.children, found.pending
                append = pending.append
                # Last: until now no other check can succeed.
                thread = mine_now
            thread.here = mine
            start = clock()
            return True

        handle.bind = bind

    handle.__enter__, handle.__exit__ = handle.pair = (enter, leave)
    return handle


def make_tracked(name: str) -> Handle:
    """Return a handle whose every entry goes the long way and looks at memory."""
    handle = Handle(name)

    def leave(kind: Any, value: Any, trace: Any) -> None:
        entries.give_back(handle, clock(), kind)

    handle.__enter__, handle.__exit__ = handle.pair = (lambda: entries.lend(handle, True), leave)
    return handle


def _aside(handle: Handle) -> None:
    _look_for_loops()
    simple = settings.on and not settings.thorough and settings.running() is None
    if not (simple and handle.bind is not None and handle.bind()):
        entries.lend(handle)


def _apart(handle: Handle, thread: Any, node: Any, home: Any, end: int, kind: Any) -> None:
    if handle.lent and entries.give_back(handle, end, kind):
        return
    began = start_of(handle)
    start = began.cell_contents
    # Where nothing is lent it can only be this: a collector may end a generator in another thread.
    if start and (thread.ident == get_ident() or not handle.lent):
        began.cell_contents = 0
        entries.leave(thread, node, home)
        entries.record(node, end - start, kind)
    elif handle.lent:
        entry = entries.stray(handle)
        if entry is not None:
            entry.close(end, kind)


# Handles by name that bind themselves: what `profiler.section(name)` gave out.
_sections: dict[str, Handle] = {}


def section(name: str) -> Handle:
    """Return the handle to keep and enter again and again, from any place and thread."""
    name = str(name)
    with registry.lock:
        if name not in _sections:
            if len(_sections) >= NAMES:
                name = OTHER
            _sections[name] = make(name, None)
            _switch(_sections[name])
        return _sections[name]


def _switch(handle: Handle) -> None:
    handle.__enter__, handle.__exit__ = (NOTHING.__enter__, NOTHING.__exit__) if off else handle.pair


def switch() -> None:
    """Do as the settings say, from the next entry on."""
    global off, detour  # noqa: PLW0603 - read at each entry, and no way is cheaper
    off = not settings.on
    detour = _loaded if settings.on and not settings.thorough else _always
    _look_for_loops()
    with registry.lock:
        for handle in _sections.values():
            _switch(handle)


def _look_for_loops() -> None:
    global detour  # noqa: PLW0603
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    if running is not None:
        settings.running = running
        if detour is _loaded:
            detour = running


def restart_open(now: int) -> None:
    """What the calling thread has open counts from now on; elsewhere, only what went the long way."""
    mine = present()
    handles, node = [], mine.here.node
    while node.parent is not None:
        handles.append(node.parent.children[node.name])
        node = node.parent
    bound = [h for h in list(_sections.values()) if thread_of(h) is mine]
    for began in map(start_of, handles + bound):
        if began.cell_contents:
            began.cell_contents = now
    for entry in list(entries.opened.values()):
        entry.start = now


def names_open() -> list[str]:
    """Sections that are open now, outermost first."""
    found: dict[str, None] = {}
    for thread in registry.threads:
        path, node = [], thread.here.node
        while node.parent is not None:
            path.append(node.name)
            node = node.parent
        found.update(dict.fromkeys(reversed(path)))
    found.update(dict.fromkeys(entry.node.name for entry in list(entries.opened.values())))
    return list(found)


def _cell(handle: Handle, variable: str) -> Any:
    function: Any = handle.pair[1]
    return function.__closure__[function.__code__.co_freevars.index(variable)]


def start_of(handle: Handle) -> Any:
    """Return the cell that says when the handle was entered by the short way; 0 if it is not open."""
    return _cell(handle, "start")


def thread_of(handle: Handle) -> ThreadTree:
    """Return the thread that the handle is bound to."""
    return _cell(handle, "thread").cell_contents  # type: ignore[no-any-return]


def _nothing(kind: Any, value: Any, trace: Any) -> None:
    pass


NOTHING: Handle = Handle("")
NOTHING.__enter__, NOTHING.__exit__ = NOTHING.pair = (lambda: None, _nothing)
registry.handle = make
