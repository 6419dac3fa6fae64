"""The tree of sections, its bounds, and the arithmetic of durations. Whole nanoseconds."""

from __future__ import annotations

from _bisect import bisect_right
from _thread import RLock, get_ident

from gpudebug.training.profiling import exits
from gpudebug.training.profiling.state import PENDING, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

OTHER = "(other)"
NAMES = 10_000
"""Distinct names of sections; calls of any further one are counted under `OTHER`."""

_NODES = 20_000
_BITMAP = 1 << 20
# Buckets an octave: a quantile is off by less than 1/16 of itself.
_PARTS = 16
_BITS = 5
_NEVER = 1 << 62


class Figures:
    """Calls, their durations, errors and peaks (bytes) of one section."""

    __slots__ = ("buckets", "calls", "errors", "gpu_peak", "high", "low", "mem_peak", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.mem_peak: int | None = None
        self.gpu_peak: int | None = None
        self.clear()

    def clear(self) -> None:
        """Forget the durations and errors; peaks stay, for a GPU's shows only in the first calls."""
        self.buckets.clear()
        self.calls = self.total = self.high = self.errors = 0
        self.low = _NEVER

    def take(self, batch: list[int]) -> None:
        """Count durations in; sorts `batch`."""
        if not batch:
            return
        batch.sort()
        if batch[0] < 0:
            # A reset by another thread came while the call ended.
            batch = [max(duration, 0) for duration in batch]
        self.calls += len(batch)
        self.total += sum(batch)
        self.low = min(self.low, batch[0])
        self.high = max(self.high, batch[-1])
        buckets, count, i = self.buckets, len(batch), 0
        while i < count:
            # All that lie in one bucket stand side by side.
            duration = batch[i]
            shift = max(duration.bit_length() - _BITS, 0)
            part = duration >> shift
            after = bisect_right(batch, ((part + 1) << shift) - 1, i)
            key = shift * _PARTS + part
            buckets[key] = buckets.get(key, 0) + after - i
            i = after

    def add(self, other: Figures) -> None:
        """Count in what another place or thread saw of the same section."""
        self.calls += other.calls
        self.total += other.total
        self.errors += other.errors
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)
        for key, count in other.buckets.items():
            self.buckets[key] = self.buckets.get(key, 0) + count
        self.mem_peak = larger(self.mem_peak, other.mem_peak)
        self.gpu_peak = larger(self.gpu_peak, other.gpu_peak)

    def quantile(self, share: float) -> float:
        """Return the duration that `share` of the calls do not exceed, off by at most a bucket's width.

        Linear between the buckets' edges; ValueError without calls.
        """
        if not self.calls:
            raise ValueError("no calls, no quantile")
        rank, before = int(share * (self.calls - 1)), 0
        for key in sorted(self.buckets):
            count = self.buckets[key]
            if before + count > rank:
                start, width = edges(key)
                # No call of the first and the last bucket lies beyond the extremes.
                start, end = max(start, self.low), min(start + width, self.high)
                return start + (end - start) * (rank - before + 0.5) / count
            before += count
        return float(self.high)


def edges(key: int) -> tuple[int, int]:
    """Return where a bucket begins, and its width."""
    if key < 2 * _PARTS:
        return key, 1
    shift = key // _PARTS - 1
    return (key - shift * _PARTS) << shift, 1 << shift


def larger(one: int | None, other: int | None) -> int | None:
    """Return the larger of two where either may be unknown."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


class Node:
    """One section at one place of one thread's tree. The root of a thread has no parent."""

    __slots__ = ("children", "figures", "name", "parent", "pending")

    def __init__(self, name: str, parent: Node | None) -> None:
        self.name = name
        self.parent = parent
        self.children = Children()
        self.children.node = self
        self.figures = Figures()
        self.pending: list[int] = []

    def look(self, kind: type | None) -> None:
        """See to what is due after a call, which ended with an exception of this kind or none."""
        # Closing a generator is how one that is not used up ends.
        if kind is not None and kind is not GeneratorExit:
            self.figures.errors += 1
        if len(self.pending) > PENDING:
            self.fold()
        if state.completed is not None and self in registry.counted():
            state.completed(self.calls)

    @property
    def calls(self) -> int:
        """How often the section ended here, folded or not."""
        return self.figures.calls + len(self.pending)

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

    def peaks(self, resident: int | None, gpu: int | None) -> None:
        """Keep what a call used if it is the most so far."""
        self.figures.mem_peak = larger(self.figures.mem_peak, resident)
        self.figures.gpu_peak = larger(self.figures.gpu_peak, gpu)

    def clear(self, peaks: bool) -> None:
        """Forget the figures, and peaks too if asked; the place in the tree stays."""
        del self.pending[:]
        self.figures.clear()
        if peaks:
            self.figures.mem_peak = self.figures.gpu_peak = None


class Children(dict):  # type: ignore[type-arg]
    """The sections directly inside `node`, by name; a new name grows a node."""

    __slots__ = ("node",)
    node: Node

    def __missing__(self, name: str) -> Node:
        return registry.grow(self, name)


class Roots(dict):  # type: ignore[type-arg]
    """Each thread's tree, by the thread's number; one that died leaves its tree to the next of its number."""

    def __missing__(self, ident: int) -> Node:
        return self.setdefault(ident, Node("", None))  # type: ignore[no-any-return]


class Registry:
    """All threads' trees and what bounds them."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.folding = False
        self.roots = Roots()
        self.names: dict[str, None] = {}
        self.nodes = 0
        self._seen_beyond: bytearray | None = None

    def grow(self, children: Children, name: str) -> Node:
        """Return the node of a section that is new at this place; of `OTHER` beyond the bounds."""
        exits.notice_rank()
        with self.lock:
            if name not in self.names and len(self.names) >= NAMES:
                self._beyond(name)
                name = OTHER
            if name not in children and self.nodes >= _NODES:
                children, name = self.roots[get_ident()].children, OTHER
            if name not in children:
                self.names[name] = None
                self.nodes += 1
                children[name] = Node(name, children.node)
            return children[name]  # type: ignore[no-any-return]

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

    def completed(self) -> int:
        """Iterations in the figures: calls of `step()`, else of the outermost section that ended most."""
        if state.warming_up:
            return 0
        return state.iterations if state.explicit else max((n.calls for n in self.counted()), default=0)

    def counted(self) -> list[Node]:
        """Return the outermost sections of the thread that counts."""
        root = self.roots.get(state.stepper)
        return [] if root is None else list(root.children.values())

    def all(self) -> Iterator[Node]:
        """Yield every node but the root, parents before their children."""
        waiting = [child for root in list(self.roots.values()) for child in list(root.children.values())]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(list(node.children.values()))

    def clear(self, peaks: bool) -> None:
        """Forget all figures, and peaks too if asked; open sections stay open."""
        with self.lock:
            for node in self.all():
                node.clear(peaks)
            self._seen_beyond = None


registry = Registry()
