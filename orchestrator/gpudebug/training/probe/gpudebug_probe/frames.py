"""A thread's frames -> what is reported of its call stack: names, the user's line, the phase. Cheap: it is
done twenty times a second while the thread waits.

A frame is `folder/file.py:function`. The *user's* code is what is neither Python's own library nor installed;
where a program is installed as a whole, it is the package that the program begins in. Below a line that has
the whole training done, as `model.learn(...)` does, the frame that counts is one of the packages that train:
those that were seen below it to call both backwards and steps of an optimizer. Frames of this package are
left out, and those in which modules only pass their calls on.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from stat import S_ISREG
from types import CodeType, FrameType, FunctionType
from typing import Any

from .calls import TYPED_IN

# Frames that are walked, and of these the ones that are kept from inside and from outside.
WALKED, INNERMOST, OUTERMOST = 256, 40, 5
LONGEST_NAME = 120
LONGEST_LINE = 120
LARGEST_FILE = 4 << 20
MOST_LINES = 4096
# What could be a key or a token, in a line of source.
LONG_WORD = re.compile(r"[A-Za-z0-9_+/=-]{20,}")
# A comprehension is its function's code, as it is from Python 3.12 on.
INNER = re.compile(r"\.<locals>\.<(?:listcomp|setcomp|dictcomp|genexpr)>")
LITERAL = re.compile(r"\"[^\"\\]*\"|'[^'\\]*'")

DATA, FORWARD, BACKWARD, OPTIMIZER, OTHER = "data", "forward", "backward", "optimizer", "other"
# A forward that records no gradients: of a network in evaluation mode, and of one in training mode.
EVAL, ACT = "eval", "act"
# The step or reset of an environment.
ENV = "env"
# By file within PyTorch and function: what a call is in while such a frame is in its stack.
MARKS = {
    ("nn/modules/module.py", "_call_impl"): FORWARD,
    ("nn/modules/module.py", "_wrapped_call_impl"): FORWARD,
    ("_tensor.py", "backward"): BACKWARD,
    ("tensor.py", "backward"): BACKWARD,
    ("autograd/__init__.py", "backward"): BACKWARD,
    ("autograd/__init__.py", "grad"): BACKWARD,
}
# What is in one of the others is the other's.
WEAK = (OPTIMIZER, ENV)
LOADER = "utils/data/dataloader.py"
# What is outside of these is left over from the process that was forked.
WORKER = ("utils/data/_utils/worker.py", "_worker_loop")
CHILD = (os.path.join("multiprocessing", "process.py"), "_bootstrap")
METHODS = ("step", "reset")
# By module, where it was imported: the class that environments derive from.
BASES = (
    ("gymnasium.core", "Env"),
    ("gym.core", "Env"),
    ("dm_env", "Environment"),
    ("dm_env._environment", "Environment"),
    ("pettingzoo.utils.env", "AECEnv"),
    ("pettingzoo.utils.env", "ParallelEnv"),
)
MANY = ("num_envs", "n_envs", "nenvs")
# Classes that are looked at, and functions around a function.
MOST, DEEPEST = 4096, 8


class CodeFacts:
    """What is known of a code object, which is kept alive so that no other one gets its id.

    `owner` is "" for the user's, the package for what is installed, None for Python's own. One without a
    name is not shown. `first`: a process begins there.
    """

    __slots__ = ("code", "file", "first", "mark", "name", "owner")

    def __init__(
        self, code: CodeType, name: str, owner: str | None, mark: str, file: str, first: bool
    ) -> None:
        self.code = code
        self.name = name
        self.owner = owner
        self.mark = mark
        self.file = file
        self.first = first


class Frames:
    """Folds stacks to keys: phase, ids of code from the innermost out, the user's frame and its line.

    `evaluating` says whether the forward that is going on is an evaluation's, `acting` whether it records no
    gradients in training mode. Without PyTorch a stack has no phase but `other`."""

    def __init__(
        self,
        torch: Any = None,
        evaluating: Callable[[], bool] = bool,
        acting: Callable[[], bool] = bool,
    ) -> None:
        self.known: dict[int, CodeFacts] = {}
        self._evaluating = evaluating
        self._acting = acting
        # By the user's code and line: what packages below it had PyTorch do, and these packages.
        self._below: dict[tuple[int, int], set[str]] = {}
        self._trainers: dict[tuple[int, int], set[str]] = {}
        # Code of those packages that was a stack's place.
        self.packaged: set[int] = set()
        home = getattr(torch, "__file__", None)
        self._torch = os.path.dirname(os.path.abspath(home)) + os.sep if home else "\0"
        self._ours = os.path.dirname(os.path.abspath(__file__)) + os.sep
        self._library = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        self._programs = {os.path.dirname(os.path.abspath(sys.executable)), os.path.join(sys.prefix, "bin")}
        self._start = _working_folder()
        self._lines: dict[tuple[str, int], str] = {}

    def fold(self, stack: list[FrameType]) -> tuple[str, tuple[int, ...], int, int]:
        """(phase, ids, place of the user's frame among them or -1, its line or 0); innermost frame first."""
        get = self.known.get
        ids: list[int] = []
        phase, package = OTHER, None
        at, line, last = -1, 0, 0
        closure = False
        for frame in stack:
            code = frame.f_code
            key = id(code)
            entry = get(key) or self._learn(code)
            mark = entry.mark
            # PyTorch's own optimizers call nothing of the user's but the closure that they were given.
            closure = closure or (mark is OPTIMIZER and at >= 0 and code.co_name == "step")
            # Of a forward in a backward, and the other way round, the outer one counts; data before all.
            weak = mark in WEAK and phase is not OTHER
            if mark and phase is not DATA and not weak and not (mark is OPTIMIZER and closure):
                phase = mark
            if entry.name and key != last:
                if at < 0 and entry.owner == "":
                    at, line = len(ids), frame.f_lineno or 0
                elif entry.owner:
                    package = entry.owner
                ids.append(key)
                last = key
            if entry.first:
                break
        if at < 0 and package is not None:
            at, line = self._in_package(stack, (package,))
        if at >= 0:
            at, line = self._told(stack, ids, phase, at, line)
        if phase is FORWARD:
            phase = EVAL if self._evaluating() else ACT if self._acting() else FORWARD
        if len(ids) > INNERMOST + OUTERMOST:
            ids, at = _cut(ids, at)
        return phase, tuple(ids), at, line

    def _told(
        self, stack: list[FrameType], ids: list[int], phase: str, at: int, line: int
    ) -> tuple[int, int]:
        """The frame that says what is done: the user's, or one of the packages that train below its line."""
        driver = (ids[at], line)
        if phase is BACKWARD or phase is OPTIMIZER:
            entries = [self.known[key] for key in ids[:at]]
            # What calls PyTorch, and not what that calls.
            begins = max((i for i, entry in enumerate(entries) if entry.mark is phase), default=at)
            packages = {entry.owner for entry in entries[begins:] if entry.owner}
            if packages:
                self._below.setdefault(driver, set()).add(phase)
                self._trainers.setdefault(driver, set()).update(packages)
        if len(self._below.get(driver, ())) < len((BACKWARD, OPTIMIZER)):
            return at, line
        inner, its_line = self._in_package(stack, self._trainers[driver])
        if not 0 <= inner < at:
            return at, line
        self.packaged.add(ids[inner])
        return inner, its_line

    def _in_package(self, stack: list[FrameType], packages: Collection[str]) -> tuple[int, int]:
        at, last = 0, 0
        for frame in stack:
            key = id(frame.f_code)
            entry = self.known[key]
            if entry.name and key != last:
                if entry.owner in packages:
                    return at, frame.f_lineno or 0
                at += 1
                last = key
            if entry.first:
                break
        return -1, 0

    def inside(
        self, key: tuple[str, tuple[int, ...], int, int], wait: str
    ) -> tuple[str, tuple[int, ...], int, int]:
        """The key with what the thread waits for in the kernel, `(kernel):socket`, as its innermost frame."""
        if not wait:
            return key
        if id(wait) not in self.known:
            self.known[id(wait)] = CodeFacts(Frames.inside.__code__, "(kernel):" + wait, None, "", "", False)
        phase, ids, at, line = key
        return phase, (id(wait), *ids), at + 1 if at >= 0 else at, line

    def forget(self) -> None:
        """Where generated code made too many: nothing may be folded any more to ids that are not reported."""
        for store in (self.known, self._lines, self._below, self._trainers, self.packaged):
            store.clear()

    def source(self, file: str, line: int) -> str:
        """A line of source, without white space around it and what could be a secret; "" where it is gone."""
        key = (file, line)
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            found = self._lines[key] = _read_line(file, line)
        return found

    def _learn(self, code: CodeType) -> CodeFacts:
        file = code.co_filename
        if file and not file.startswith("<"):
            file = os.path.normpath(os.path.join(self._start, file))
        owner, mark, shown = self._classified(file, code.co_name)
        if not mark and steps_one(code):
            mark = ENV
        place = (file[len(self._torch) :] if file.startswith(self._torch) else "", code.co_name)
        first = place == WORKER or (file.endswith(CHILD[0]) and code.co_name == CHILD[1])
        entry = CodeFacts(code, _name(file, code) if shown else "", owner, mark, file, first)
        self.known[id(code)] = entry
        return entry

    def _classified(self, file: str, function: str) -> tuple[str | None, str, bool]:
        # Nor has some generated code a name at all.
        if not file or file.startswith("<"):
            return "" if file.startswith(TYPED_IN) else None, "", True
        if file.startswith(self._ours):
            return None, "", False
        if file.startswith(self._torch):
            mark = _mark(file[len(self._torch) :].replace(os.sep, "/"), function)
            return None, mark, mark != FORWARD
        parts = file.split(os.sep)
        for place in ("site-packages", "dist-packages"):
            if place in parts[:-1]:
                return parts[parts.index(place) + 1], "", True
        if file.startswith(self._library) or os.path.dirname(file) in self._programs:
            return None, "", True
        return "", "", True


def stack_from(frame: FrameType) -> list[FrameType]:
    """The frames of the thread that calls, from this one out. Those of another thread: see `sampler`."""
    stack: list[FrameType] = []
    above: FrameType | None = frame
    while above is not None and len(stack) < WALKED:
        stack.append(above)
        above = above.f_back
    return stack


def _cut(ids: list[int], at: int) -> tuple[list[int], int]:
    """Return the frames that are kept, the user's among them, and its place."""
    outer = len(ids) - OUTERMOST
    kept = ids[:INNERMOST] + ids[outer:]
    if at >= outer:
        at -= outer - INNERMOST
    elif at >= INNERMOST:
        kept[INNERMOST - 1] = ids[at]
        at = INNERMOST - 1
    return kept, at


def _mark(file: str, function: str) -> str:
    if file == LOADER:
        return DATA
    if file.startswith("optim/") and function in ("step", "wrapper") and "lr_scheduler" not in file:
        return OPTIMIZER
    return MARKS.get((file, function), "")


def _name(file: str, code: CodeType) -> str:
    place = file if file.startswith("<") else "/".join(file.split(os.sep)[-2:]).lstrip("/")
    function = INNER.sub("", getattr(code, "co_qualname", code.co_name))
    return (place[-LONGEST_NAME:] + ":" + function)[: 2 * LONGEST_NAME]


def _read_line(file: str, line: int) -> str:
    if file.startswith("<") or line < 1:
        return ""
    try:
        # A notebook's cell is in no file.
        cached = getattr(sys.modules.get("linecache"), "cache", {}).get(file)
        if cached is not None and len(cached) > 2:
            text = cached[2][line - 1].strip()
        # Reading from a pipe, or the terminal, would take from the program what is meant for it.
        elif not S_ISREG(os.stat(file).st_mode):
            return ""
        else:
            with open(file, "rb") as source:
                lines = source.read(LARGEST_FILE).split(b"\n", line)
            text = lines[line - 1].decode("utf-8", "replace").strip()
    # ValueError: a name that no file has.
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ""
    hidden = LITERAL.sub(lambda literal: LONG_WORD.sub("...", literal.group()), text)
    return hidden[:LONGEST_LINE]


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def steps_one(code: CodeType) -> bool:
    """Tell whether an environment's class has this code as its step or reset. Runs no code of the user's."""
    if code.co_name not in METHODS:
        return False
    for kind in _environments():
        if _code(_own(kind).get(code.co_name)) is code:
            return not any(name in _own(base) for base in type.mro(kind) for name in MANY)
    return False


def _own(kind: type) -> Any:
    return type.__getattribute__(kind, "__dict__")


def _code(method: Any) -> Any:
    """Return the code of a function, of one that is wrapped that of the innermost."""
    for _ in range(DEEPEST):
        inner = getattr(method, "__wrapped__", None) if isinstance(method, FunctionType) else None
        if inner is None:
            break
        method = inner
    return method.__code__ if isinstance(method, FunctionType) else None


def _environments() -> Iterator[type]:
    """Yield the classes that derive from a known one, each once."""
    known: set[int] = set()
    left = [base for module, name in BASES if isinstance(base := _found(module, name), type)]
    while left and len(known) < MOST:
        kind = left.pop()
        if id(kind) not in known:
            known.add(id(kind))
            if kind.__name__ == "VectorEnv":
                continue
            yield kind
            left.extend(type.__subclasses__(kind))


def _found(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)
