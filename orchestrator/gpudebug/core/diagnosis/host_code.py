"""The piece of a program's own host code that takes most of each step, by where it is and what it calls.

What a function is called says nothing of it: a share of the step that one place takes is a cause by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpudebug.core.inside.stacks.shares import CodeLine, SampledStack, in_compiler, in_pytorch, seen
from gpudebug.core.lazy import regex
from gpudebug.core.records import Stacks

PLACED = "host_code_share"
"""The signal that is of one place."""
_TRAINS = ("backward", "optimizer")
_COMPUTES = ("forward", "eval", "act", "env")
"""Phases with causes of their own. In others that compute, hooks are host code: what calls no operator."""
_LOOPS = 0.02
"""Of all training, from which a function holds the loop over steps, and its lines count apart."""
_EVERYWHERE = 0.95
_MOSTLY = 0.8
"""Of a function's time: one that it calls with so much of it says more."""
_GENERIC = regex(r"<locals>|wrap|decorat|:_?(inner|call_?impl|__call__)$|:_call_method$")
_READS = regex(
    r"\.(item|cpu|tolist|numpy|nonzero|any|all|to|cuda)\(|synchroni[sz]e\(|block_until_ready|device_get"
    r"|asarray\(|\b(float|int|bool|print)\("
)
"""Lines that wait until a device has done what was asked of it: that is no work of the host's."""
_READER = regex(r":([\w<>]+\.)*(convert_to_numpy|_?numpy|__array__|_value|block_until_ready|device_get)$")
"""Functions of Keras, TensorFlow and JAX that do."""
_TRAINING = regex(r"(?i)forward|backward|grad|train|fit|optimi|loss|updat|step|learn|epoch|main|run|<module>")
"""How functions that train are called: without PyTorch nothing else tells them from other host code."""


@dataclass
class _HostPiece:
    """What one function, or one call of the loop's own lines, took."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    operators_s: float = 0.0
    lines: defaultdict[tuple[str, int | None, str | None], float] = field(
        default_factory=lambda: defaultdict(float)
    )
    inner: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, one: SampledStack, called: Sequence[str]) -> None:
        self.seconds += one.seconds
        self.cpu_s += min(one.cpu_s, one.seconds)
        if _operates(one):
            self.operators_s += one.seconds
        self.lines[one.spot] += one.seconds
        for function in called:
            self.inner[function] += one.seconds

    @property
    def host_s(self) -> float:
        """Its seconds; without those in PyTorch's own files where these are most of it, and it is none."""
        own_s = self.seconds - self.operators_s
        return self.seconds if own_s >= self.operators_s else own_s

    @property
    def place(self) -> CodeLine:
        most = max(self.lines, key=lambda spot: self.lines[spot])
        return CodeLine(*most, "running" if self.cpu_s >= self.seconds / 2 else "waiting")


def host_code(training: Stacks | None, *, on_cpu: bool = True) -> tuple[float, CodeLine] | None:
    """Return the share (0 to 1) of the watched time of the piece with the most, and its line with the most.

    Summed over the lines of a function and what it calls; in functions that hold the loop over steps, over
    what one of their lines calls. Without PyTorch's own operators, data sets' code and waits for a loader,
    which have causes of their own; but where the training computes `on_cpu`, without lines that read from the
    device. None if there is nothing of the kind.
    """
    if training is None or training.seconds <= 0:
        return None
    rows = seen(training)
    phased = any(one.phase != "other" for one in rows)
    loops, own = loops_of(rows), frozenset(r.frames[r.own] for r in rows if r.own is not None)
    pieces: defaultdict[str, _HostPiece] = defaultdict(_HostPiece)
    for one in _candidates(rows):
        if not on_cpu and _READS.search(one.source or ""):
            continue
        called = [frame for frame in one.frames[: (one.own or 0) + 1] if frame in own and frame not in loops]
        if not phased and any(_TRAINING.search(f.rpartition(":")[2]) for f in called or one.frames[-1:]):
            continue
        if not called and one.phase != "data" and _operates(one):
            continue
        _add(pieces, one, called or [_callee(one)])
    return _most(pieces, training.seconds)


def worker_code(workers: Stacks | None) -> tuple[float, CodeLine] | None:
    """Return the same of the time of loader workers: of data sets' code, where it runs."""
    if workers is None or workers.seconds <= 0:
        return None
    pieces: defaultdict[str, _HostPiece] = defaultdict(_HostPiece)
    own = frozenset(r.frames[r.own] for r in seen(workers) if r.own is not None)
    for one in seen(workers):
        if one.own is not None and one.cpu_s >= one.seconds / 2:
            _add(pieces, one, [frame for frame in one.frames[: one.own + 1] if frame in own])
    return _most(pieces, workers.seconds)


def share_at(stacks: Stacks, place: CodeLine) -> float:
    """Return the share of the watched time in a line, with what it calls; in a function where no line is."""
    if stacks.seconds <= 0:
        return 0.0
    spot, rows = (place.frame, place.line, place.source), seen(stacks)
    at = [one for one in rows if one.spot == spot or (place.line is None and place.frame in one.frames)]
    return min(1.0, sum(one.seconds for one in at) / stacks.seconds)


def _add(pieces: defaultdict[str, _HostPiece], one: SampledStack, called: Sequence[str]) -> None:
    """A function that calls itself counts once."""
    functions = list(dict.fromkeys(called))
    for at, function in enumerate(functions):
        pieces[function].add(one, functions[at + 1 :])


def _most(pieces: dict[str, _HostPiece], seconds: float) -> tuple[float, CodeLine] | None:
    if not pieces:
        return None
    most = max(pieces, key=lambda name: pieces[name].host_s)
    # Functions that call each other have no innermost one: no more steps than there are functions.
    for _ in pieces:
        most = _inner(pieces, most) or most
    return min(1.0, pieces[most].host_s / seconds), pieces[most].place


def _candidates(rows: Sequence[SampledStack]) -> Iterator[SampledStack]:
    for one in rows:
        if one.own is None or one.packaged or one.phase in _COMPUTES:
            continue
        if one.phase in _TRAINS and _operates(one):
            continue
        below = one.frames[one.own + 1 :]
        if one.cpu_s < one.seconds / 2 and (one.phase == "data" or _READER.search(one.frames[-1])):
            continue
        if any(map(in_compiler, below)):
            continue
        yield one


def _operates(one: SampledStack) -> bool:
    """Tell whether the line has PyTorch do something."""
    return any(map(in_pytorch, one.frames[(one.own or 0) + 1 :]))


def loops_of(rows: Sequence[SampledStack]) -> frozenset[str]:
    """Return the functions below which the training happens; where none shows those that are in nearly every
    stack."""
    seconds: defaultdict[str, float] = defaultdict(float)
    updates = any(one.phase == "optimizer" for one in rows)
    counted = [one for one in rows if updates and one.phase in _TRAINS]
    part = _LOOPS if counted else _EVERYWHERE
    counted = counted or list(rows)
    for one in counted:
        for frame in set(one.frames):
            seconds[frame] += one.seconds
    least = part * sum(one.seconds for one in counted)
    return frozenset(frame for frame, spent in seconds.items() if spent >= least)


def _callee(one: SampledStack) -> str:
    """Return what a line of the loop's calls; the line itself where it computes."""
    below = one.frames[(one.own or 0) + 1 :]
    called = next((frame for frame in below if not _GENERIC.search(frame)), None)
    return called or f"{one.spot[0]}:{one.line}"


def _inner(pieces: dict[str, _HostPiece], name: str) -> str | None:
    piece = pieces[name]
    found = max(piece.inner, key=lambda function: piece.inner[function], default=None)
    return found if found is not None and piece.inner[found] >= _MOSTLY * piece.seconds else None
