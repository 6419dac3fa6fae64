"""Where durations are kept: a tree of sections for each thread, grown as sections are entered."""

from __future__ import annotations

from _thread import RLock, _local, get_ident

from gpudebug.training.profiling.figures import Figures
from gpudebug.training.profiling.settings import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

OTHER = "(other)"
NAMES = 10_000
"""Distinct names of sections; calls of any further one are counted under `OTHER`."""

_NODES = 20_000
# Durations kept as they came; folding them together is cheaper than each alone.
_PENDING = 255
_BITMAP = 1 << 20


class Node:
    """One section at one place of one thread's tree. The root of a thread has no parent."""

    __slots__ = ("children", "figures", "limit", "name", "parent", "pending", "thread")

    def __init__(self, name: str, parent: Node | None, thread: ThreadTree) -> None:
        self.name = name
        self.parent = parent
        self.thread = thread
        self.children = Children()
        self.children.node = self
        self.figures = Figures()
        self.pending: list[int] = []
        self.limit = _PENDING

    def fold(self) -> None:
        """Put what is pending into the figures; any thread may ask for it."""
        with registry.lock:
            # A finalizer or signal handler may have interrupted the folding, and time sections of its own.
            if registry.folding:
                return
            registry.folding = True
            try:
                batch = self.pending[:]
                del self.pending[: len(batch)]
                self.figures.take(batch)
            finally:
                registry.folding = False

    def full(self) -> None:
        """What is to be done when `pending` is longer than `limit`."""
        if len(self.pending) > _PENDING:
            self.fold()
        if self.limit < 0:
            settings.completed(self)

    @property
    def calls(self) -> int:
        """How often the section ended here, folded or not."""
        return self.figures.calls + len(self.pending)

    def clear(self, peaks: bool) -> None:
        """Forget the figures, and peaks too if asked; the place in the tree stays."""
        del self.pending[:]
        self.figures.clear()
        if peaks:
            self.figures.mem_peak = self.figures.gpu_peak = None


class Children(dict):  # type: ignore[type-arg]
    """The sections directly inside `node`: name to handle; a new name grows a node."""

    __slots__ = ("node",)
    node: Node

    def __missing__(self, name: Any) -> Any:
        return registry.grow(self, name)


class ThreadTree:
    """One thread's tree: `here` are the children of the innermost open section, `ident` 0 when it died."""

    __slots__ = ("here", "ident", "root")

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.root = Node("", None, self)
        self.here = self.root.children

    def leave(self) -> None:
        """Its thread is no more: whatever was open is not."""
        self.ident = 0
        self.here = self.root.children


class _TreeLease:
    """Kept in the thread's own storage: when the thread dies, its tree serves the next one."""

    __slots__ = ("free", "ident", "thread")

    def __init__(self, thread: ThreadTree, free: list[ThreadTree]) -> None:
        self.thread = thread
        self.ident = thread.ident
        self.free = free

    def __del__(self) -> None:
        # No lock here: this may run anywhere. After a fork the tree may be free already.
        if self.thread.ident == self.ident:
            self.thread.leave()
            self.free.append(self.thread)


class Registry:
    """All threads' trees and what bounds them."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.folding = False
        self.handle: Callable[[str, Node], Any]
        self.threads: list[ThreadTree] = []
        self.free: list[ThreadTree] = []
        self.names: dict[str, None] = {}
        self.nodes = 0
        # The thread whose outermost sections are iterations, and whether anybody wants to know of them.
        self.stepper = 0
        self.watching = False
        self._seen_beyond: bytearray | None = None

    def arrive(self) -> ThreadTree:
        """Return a tree for the calling thread."""
        with self.lock:
            if self.free:
                thread = self.free.pop()
                thread.ident = get_ident()
            else:
                thread = ThreadTree(get_ident())
                self.threads.append(thread)
            local.thread = thread
            local.lease = _TreeLease(thread, self.free)
            self._watch(thread)
        return thread

    def grow(self, children: Children, name: Any) -> Any:
        """Return the handle of a section that is new at this place; of `OTHER` beyond the bounds."""
        settings.noticed()
        name = name if isinstance(name, str) else str(name)
        with self.lock:
            if name not in self.names and len(self.names) >= NAMES:
                self._beyond(name)
                name = OTHER
            if name in children:
                return children[name]
            if self.nodes >= _NODES:
                children = children.node.thread.root.children
                name = OTHER
                if name in children:
                    return children[name]
            self.names[name] = None
            self.nodes += 1
            node = Node(name, children.node, children.node.thread)
            node.limit = self._limit(node)
            handle = children[name] = self.handle(name, node)
            return handle

    def _beyond(self, name: str) -> None:
        if self._seen_beyond is None:
            self._seen_beyond = bytearray(_BITMAP // 8)
        bit = hash(name) % _BITMAP
        self._seen_beyond[bit >> 3] |= 1 << (bit & 7)

    def capped(self) -> int:
        """About how many names there were beyond the bound (linear counting; exact to 1 % or so)."""
        if self._seen_beyond is None:
            return 0
        from math import log

        unset = sum(8 - bin(byte).count("1") for byte in self._seen_beyond)
        return round(-_BITMAP * log(max(unset, 1) / _BITMAP))

    def watch(self, watching: bool) -> None:
        """Have `settings.completed` called for each outermost section that ends, or no longer."""
        with self.lock:
            self.watching = watching
            for thread in self.threads:
                self._watch(thread)

    def _watch(self, thread: ThreadTree) -> None:
        for handle in thread.root.children.values():
            handle.node.limit = self._limit(handle.node)

    def _limit(self, node: Node) -> int:
        outermost = node.parent is not None and node.parent.parent is None
        return -1 if self.watching and outermost and node.thread.ident == self.stepper else _PENDING

    def completed(self) -> int:
        """Of the outermost sections of the thread that counts, how often the one that ended most did."""
        roots = [thread.root for thread in self.threads if thread.ident == self.stepper]
        return max(
            (handle.node.calls for root in roots for handle in list(root.children.values())), default=0
        )

    def all(self) -> Iterator[Node]:
        """Yield every node but the roots, parents before their children."""
        waiting = [thread.root for thread in self.threads]
        while waiting:
            node = waiting.pop()
            if node.parent is not None:
                yield node
            waiting.extend(handle.node for handle in list(node.children.values()))

    def clear(self, peaks: bool) -> None:
        """Forget all figures, and peaks too if asked; open sections stay open."""
        with self.lock:
            for node in self.all():
                node.clear(peaks)
            self._seen_beyond = None

    def after_fork(self) -> None:
        """In a forked child: only the calling thread lives on, and nothing of it was the child's."""
        mine = getattr(local, "thread", None)
        self.lock = RLock()
        self.folding = False
        self.free = [thread for thread in self.threads if thread is not mine]
        for thread in self.free:
            thread.leave()
        self.stepper = get_ident()
        self.clear(True)


def present() -> ThreadTree:
    """Return the calling thread's tree."""
    try:
        return local.thread  # type: ignore[no-any-return]
    except AttributeError:
        return registry.arrive()


local = _local()
registry = Registry()
