"""Keeps torch.compile from looking at the probe: what it compiles is what it would compile without one.

While a compiled function runs, PyTorch looks at each Python frame that starts, and would compile the probe's
too: seconds of the training's time, and unwanted warnings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

# Methods that call nothing of the training's: what they call is passed by as well.
OURS_ALONE = frozenset(
    (
        *("begin", "iteration", "fetched", "failed", "count", "took", "started"),
        *("add", "place", "trained_on", "read", "hand", "taken", "looks_at", "copied"),
        *("stepping", "look", "feed", "fed", "_begins", "_ended"),
        *("called", "seen", "stepped", "pause", "resume", "anew", "end"),
    )
)


def hide_all(torch: Any) -> None:
    """Hide every function of this package that is loaded by now, their inner ones included."""
    mark = _marker(torch)
    if mark is None:
        return
    for name, module in list(sys.modules.items()):
        if module is not None and name.startswith(__package__ + "."):
            for code in _codes(module):
                mark(code, code.co_name in OURS_ALONE)


def hide(torch: Any, wrapper: FunctionType) -> None:
    """Hide a function that calls the training's code, and those defined in it."""
    mark = _marker(torch)
    if mark is not None:
        for code in _within(wrapper.__code__):
            mark(code, False)


def _marker(torch: Any) -> Callable[[CodeType, bool], object] | None:
    """Marks code to pass by, what it calls included or not; None before PyTorch 2, which compiles nothing.

    `torch._dynamo` has a function for it, but takes seconds to import, and most trainings never do.
    """
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    strategy, action = getattr(frames, "_FrameExecStrategy", None), getattr(frames, "_FrameAction", None)
    mark = getattr(frames, "set_code_exec_strategy", None)
    if strategy is not None and action is not None and mark is not None:
        itself, below = strategy(action.SKIP, action.DEFAULT), strategy(action.SKIP, action.SKIP)
        return lambda code, all_below: mark(code, below if all_below else itself)
    skip = getattr(frames, "skip_code", None)
    return None if skip is None else lambda code, all_below: skip(code)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            for member in vars(value).values() if isinstance(value, type) else (value,):
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    yield from _within(function.__code__)


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)
