"""What measuring itself takes: measured once, where profiling is first enabled."""

from __future__ import annotations

from _functools import partial  # type: ignore[import-not-found]
from _thread import get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import handles
from gpudebug.training.profiling.settings import settings
from gpudebug.training.profiling.tree import Node, ThreadTree, local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ROUNDS = 101


def calibrate() -> None:
    """Set what an empty section takes itself for, which the report takes off, and what one costs besides.

    Takes a quarter of a millisecond. Only while profiling is off: what it measures lies in no thread's tree.
    """
    if settings.calibrated:
        return
    settings.calibrated = True
    theirs = getattr(local, "thread", None)
    local.thread = scratch = ThreadTree(get_ident())
    node = Node("", scratch.root, scratch)
    short = scratch.root.children[""] = handles.make("", node)
    was, settings.on = settings.on, True
    # Nothing sends these entries the long way, an event loop neither.
    handles.detour = partial({}.get, None)
    try:
        settings.bias, settings.cost = _measured(short, node)
        long_bias, _ = _measured(handles.make_tracked(""), node)
        settings.long_bias = long_bias - settings.bias
    finally:
        settings.on = was
        handles.switch()
        if theirs is None:
            del local.thread
        else:
            local.thread = theirs


def _measured(handle: Any, node: Node) -> tuple[int, int]:
    """Nanoseconds that an empty section measures, and that it takes beyond them: medians."""
    whole = []
    for _ in range(_ROUNDS):
        start = clock()
        with handle:
            pass
        whole.append(clock() - start)
    inside = sorted(node.pending)[_ROUNDS // 2]
    node.clear(True)
    return inside, max(sorted(whole)[_ROUNDS // 2] - inside, 0)
