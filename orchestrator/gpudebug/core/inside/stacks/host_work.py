"""What a program without PyTorch computes itself between its compiled steps: JAX's and TensorFlow's."""

from __future__ import annotations

from collections import defaultdict

from gpudebug.core.inside.stacks.shares import SampledStack, in_compiler, seen
from gpudebug.core.records import Stacks

_EVERYWHERE = 0.95
"""Of the time: the innermost function that is in so much of it is the one that loops over steps."""


def host_share(stacks: Stacks) -> float | None:
    """Return the share of the watched time (0 to 1) in which functions that the loop over steps calls run on
    a CPU and are in none of the compiler's files. None if no such file shows, or phases of PyTorch do.

    A compiled step is called by the loop itself, and while the device works the thread waits.
    """
    rows = seen(stacks)
    compiled = any(in_compiler(frame) for one in rows for frame in one.frames)
    if not compiled or stacks.seconds <= 0 or any(one.phase != "other" for one in rows):
        return None
    depth = _loop(rows)
    called = [
        one
        for one in rows
        if one.own is not None and one.own > depth and not any(map(in_compiler, one.frames))
    ]
    return min(1.0, sum(one.within("running") for one in called) / stacks.seconds)


def _loop(rows: tuple[SampledStack, ...]) -> int:
    """Return the depth of the innermost call that nearly all stacks have in common."""
    total = sum(one.seconds for one in rows)
    seconds: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for one in rows:
        for depth in range(len(one.frames)):
            seconds[one.frames[: depth + 1]] += one.seconds
    return max((len(path) for path, s in seconds.items() if s >= _EVERYWHERE * total), default=0) - 1
