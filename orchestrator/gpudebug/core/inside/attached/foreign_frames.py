"""Frames that py-spy read of another process -> what its stack is for: phase, names, the user's line.

The rules are those of the probe, which reads its own process (`training/probe/gpudebug_probe/frames.py`); the
test of this module holds both to the same marks. From outside the folders of its Python are not known: the
standard library is what lies in `lib/pythonX.Y`, installed code what lies in `site-packages`.

A line of its `raw` format is `thread (30303): MainThread;<module> (/src/a.py:18);main (/src/a.py:12) 76`: the
thread, its frames from the outermost in, how often it was seen so. py-spy prints the thread as /proc numbers
it if it knows that, else as Python does (`0x7F…`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.lazy import regex

_LINE = regex(r"(?P<stack>.*) (?P<count>[0-9]{1,12})")
_THREAD = regex(r"thread \((?P<id>[^()]{1,40})\)(: (?P<name>.*))?", re.DOTALL)
_FRAME = regex(r"(?P<name>.*?) \((?P<file>.*?)(:(?P<line>[0-9]{1,7}))?\)")
_MAIN = "MainThread"
# Of a stack that recurses without end.
_DEEPEST = 1000


class RawFrame(NamedTuple):
    """One call: `line` is the one that runs, 0 if unknown."""

    name: str
    file: str
    line: int


class RawStack(NamedTuple):
    """A thread's stack, the outermost frame first, and how often it was seen.

    `tid` is the thread's number in /proc as its own namespace counts it, None if py-spy does not know it.
    """

    thread: str
    tid: int | None
    main: bool
    frames: tuple[RawFrame, ...]
    times: int


def read_raw(text: str) -> list[RawStack]:
    """Parse py-spy's output; a line that is none of its is left out."""
    return [found for line in text.split("\n") if (found := _stack(line))]


def _stack(line: str) -> RawStack | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    first, *rest = match["stack"].split(";")
    # A thread's name may hold the separator.
    while rest and _frame(rest[0]) is None:
        first = f"{first};{rest.pop(0)}"
    thread = _THREAD.fullmatch(first)
    if thread is None:
        return None
    number = thread["id"]
    frames = tuple(frame for part in rest[:_DEEPEST] if (frame := _frame(part)))
    return RawStack(
        thread=number,
        tid=int(number) if number.isdecimal() else None,
        main=thread["name"] == _MAIN,
        frames=frames,
        times=int(match["count"]),
    )


def _frame(part: str) -> RawFrame | None:
    match = _FRAME.fullmatch(part)
    return RawFrame(match["name"], match["file"], int(match["line"] or 0)) if match else None


DATA, FORWARD, BACKWARD, OPTIMIZER, OTHER = "data", "forward", "backward", "optimizer", "other"
# By file within PyTorch and function: what a call is in while such a frame is in its stack.
MARKS = {
    ("nn/modules/module.py", "_call_impl"): FORWARD,
    ("nn/modules/module.py", "_wrapped_call_impl"): FORWARD,
    ("_tensor.py", "backward"): BACKWARD,
    ("tensor.py", "backward"): BACKWARD,
    ("autograd/__init__.py", "backward"): BACKWARD,
    ("autograd/__init__.py", "grad"): BACKWARD,
}
LOADER = "utils/data/dataloader.py"
WORKER = ("utils/data/_utils/worker.py", "_worker_loop")
CHILD = (posixpath.join("multiprocessing", "process.py"), "_bootstrap")
# A loader's iterator that fetches in the training's own process, and the one that has workers.
OWN_PROCESS, WITH_WORKERS = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
TYPED_IN = ("<stdin>", "<string>", "<ipython")
# Frames that are kept from inside and from outside.
INNERMOST, OUTERMOST = 40, 5
LONGEST_NAME = 120

_INNER = regex(r"\.<locals>\.<(?:listcomp|setcomp|dictcomp|genexpr)>")
_PYTHON = regex(r"/(?:lib|lib64|Lib)/(?:python|pypy)[\d.]+t?/")
_INSTALLED = regex(r"/(?:site|dist)-packages/([^/]+)")
_TORCH = regex(r"/(?:site|dist)-packages/torch/(.+)$")
_TORCH_SOURCE = regex(r"^(?!.*-packages/).*/torch/((?:nn|optim|autograd|utils/data)/.+|_tensor\.py)$")
_PROGRAM = regex(r"/bin/[^/.]+$")


class FoldedStack(NamedTuple):
    """A stack as it is reported: names from the outermost in, `at` the user's among them or -1, at `line` of
    `file`. `worker`: it is a loader worker's. `loader` is the class of the loader's iterator in it, or "".
    `packaged`: the line is one of a framework that trains below a line of the user's."""

    phase: str
    names: tuple[str, ...]
    at: int
    line: int
    file: str
    worker: bool
    loader: str
    packaged: bool = False


Line = tuple[str, str, int]
"""A function, its file and a line of it."""


class _Facts(NamedTuple):
    """What is known of a frame without its line. `owner` is "" for the user's, the package for what is
    installed, None for Python's own; one without a name is not shown."""

    name: str
    owner: str | None
    mark: str
    first: bool
    worker: bool


def trainers(stacks: Iterable[Sequence[RawFrame]]) -> dict[Line, frozenset[str]]:
    """Return the packages that train below a line of the user's, by such a line: below it they were seen to
    call backwards and steps of an optimizer."""
    phases: dict[Line, set[str]] = {}
    packages: dict[Line, set[str]] = {}
    for stack in stacks:
        inner: list[_Facts] = []
        for frame in reversed(stack):
            facts = _facts(frame.name, frame.file)
            if facts.owner == "":
                _meet(frame, inner, phases, packages)
                break
            inner.append(facts)
    both = {BACKWARD, OPTIMIZER}
    return {line: frozenset(packages[line]) for line, met in phases.items() if met >= both}


def _meet(
    frame: RawFrame, inner: Sequence[_Facts], phases: dict[Line, set[str]], packages: dict[Line, set[str]]
) -> None:
    """Note what the packages between a frame of the user's and PyTorch have that do."""
    marked = [i for i, facts in enumerate(inner) if facts.mark in (BACKWARD, OPTIMIZER)]
    found = {facts.owner for facts in inner[marked[-1] :] if facts.owner} if marked else set()
    if found:
        line = frame.name, frame.file, frame.line
        phases.setdefault(line, set()).add(inner[marked[-1]].mark)
        packages.setdefault(line, set()).update(found)


def fold(frames: Sequence[RawFrame], below: Mapping[Line, frozenset[str]] | None = None) -> FoldedStack:
    """Fold one stack, given from the outermost frame in; `below` are the packages that train below lines of
    the user's."""
    phase, worker, loader, package = OTHER, False, "", None
    kept: list[tuple[RawFrame, _Facts]] = []
    for frame in reversed(frames):
        facts = _facts(frame.name, frame.file)
        # Of a forward in a backward, and the other way round, the outer one counts; data before all.
        if facts.mark and phase is not DATA and not (facts.mark is OPTIMIZER and phase is not OTHER):
            phase = facts.mark
        if facts.mark is DATA and not loader:
            loader = next((name for name in (OWN_PROCESS, WITH_WORKERS) if name in frame.name), "")
        if facts.name and not (kept and kept[-1][1].name == facts.name):
            kept.append((frame, facts))
            package = facts.owner or package
        worker = worker or facts.worker
        if facts.first:
            break
    at = _place_of(("",), kept)
    if at < 0 and package is not None:
        at = _place_of((package,), kept)
    own = kept[at][0] if at >= 0 else RawFrame("", "", 0)
    inner = _place_of((below or {}).get((own.name, own.file, own.line), ()), kept)
    packaged = 0 <= inner < at
    kept, at = _cut(kept, inner if packaged else at)
    frame = kept[at][0] if at >= 0 else RawFrame("", "", 0)
    names = tuple(facts.name for _, facts in reversed(kept))
    outer = len(kept) - 1 - at if at >= 0 else -1
    return FoldedStack(phase, names, outer, frame.line, frame.file, worker, loader, packaged)


def _place_of(owners: Collection[str], kept: Sequence[tuple[RawFrame, _Facts]]) -> int:
    return next((i for i, (_, facts) in enumerate(kept) if facts.owner in owners), -1)


def _cut(kept: list[tuple[RawFrame, _Facts]], at: int) -> tuple[list[tuple[RawFrame, _Facts]], int]:
    """Return the frames that are kept, the user's among them, and its place."""
    outer = len(kept) - OUTERMOST
    if outer <= INNERMOST:
        return kept, at
    found = kept[:INNERMOST] + kept[outer:]
    if at >= outer:
        return found, at - (outer - INNERMOST)
    if at >= INNERMOST:
        found[INNERMOST - 1] = kept[at]
        return found, INNERMOST - 1
    return found, at


@lru_cache(maxsize=8192)
def _facts(function: str, file: str) -> _Facts:
    path = posixpath.normpath(file) if file and not file.startswith("<") else file
    bare = function.rpartition(".")[2]
    torch = _within_torch(path)
    if torch is not None:
        mark = _mark(torch, bare)
        first = (torch, bare) == WORKER
        return _Facts(_name(path, function) if mark != FORWARD else "", None, mark, first, first)
    first = path.endswith(CHILD[0]) and bare == CHILD[1]
    return _Facts(_name(path, function), _owner(path), "", first, False)


def _within_torch(path: str) -> str | None:
    """Return the part of a path within PyTorch, installed or in its own source tree; None outside of it."""
    for pattern in (_TORCH, _TORCH_SOURCE):
        found = pattern.search(path)
        if found is not None:
            return found[1]
    return None


def _owner(path: str) -> str | None:
    if not path or path.startswith("<"):
        return "" if path.startswith(TYPED_IN) else None
    installed = _INSTALLED.search(path)
    if installed is not None:
        return installed[1]
    return None if _PYTHON.search(path) or _PROGRAM.search(path) else ""


def _mark(file: str, function: str) -> str:
    if file == LOADER:
        return DATA
    if file.startswith("optim/") and function in ("step", "wrapper") and "lr_scheduler" not in file:
        return OPTIMIZER
    return MARKS.get((file, function), "")


def _name(file: str, function: str) -> str:
    place = file if file.startswith("<") else "/".join(file.split("/")[-2:]).lstrip("/")
    return (place[-LONGEST_NAME:] + ":" + _INNER.sub("", function))[: 2 * LONGEST_NAME]
