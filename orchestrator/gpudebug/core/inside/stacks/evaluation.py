"""The time that a thread spends on evaluation, by what it does there: not by what functions are called."""

from __future__ import annotations

import re
from collections import defaultdict

from gpudebug.core.inside.stacks.patterns import pattern
from gpudebug.core.inside.stacks.shares import CodeLine, SampledStack, Taken, seen
from gpudebug.core.records import Stacks

_TRAINS = ("backward", "optimizer", "forward")
_OF_EVALUATION = ("eval", "data", "env")
_ACTS = ("eval", "act")
_HARDLY = 0.02
"""Of a function's time what samples at its edges may put into the wrong phase."""
_MOSTLY = 0.5
_CHECKS = re.compile(r"(?:^|/)distributions/\w+\.py:")
"""PyTorch's distributions: they validate what they are given, within a forward."""


def evaluation(stacks: Stacks, named: str | None = None) -> Taken:
    """The share of the watched time that evaluation takes, and the function that most of it is in.

    That is forwards in evaluation mode without gradients, and all else that is done in a function which
    makes such forwards, fetches batches for them, and never trains. `named`: only functions in whose name
    this expression is found.
    """
    rows = seen(stacks)
    if stacks.seconds <= 0 or not any(one.phase == "eval" for one in rows):
        return Taken(0.0)
    evaluates = _functions(rows)
    if named is not None:
        search = pattern(named).search
        evaluates = frozenset(frame for frame in evaluates if search(frame))
    spent: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in rows:
        function = next((frame for frame in one.frames if frame in evaluates), None)
        if function is None and named is None and one.phase == "eval":
            function = one.spot[0]
        if function is not None:
            spent[function][0] += one.seconds
            spent[function][1] += one.cpu_s
    if not spent:
        return Taken(0.0)
    most = max(spent, key=lambda name: spent[name][0])
    total = sum(seconds for seconds, _ in spent.values())
    seconds, cpu_s = spent[most]
    place = CodeLine(most, None, None, "running" if cpu_s >= seconds / 2 else "waiting")
    return Taken(min(1.0, total / stacks.seconds), place, seconds / total)


def acting(stacks: Stacks, named: str) -> float:
    """The share of the watched time (0 to 1) in forwards without gradients, outside of functions that
    evaluate and are `named` so: a policy acts in them, or a teacher and a target network are asked."""
    rows = seen(stacks)
    search = pattern(named).search
    evaluates = frozenset(frame for frame in _functions(rows) if search(frame))
    spent = [one.seconds for one in rows if one.phase in _ACTS and evaluates.isdisjoint(one.frames)]
    return min(1.0, sum(spent) / stacks.seconds) if stacks.seconds > 0 else 0.0


def _functions(rows: tuple[SampledStack, ...]) -> frozenset[str]:
    """Those in which a network is evaluated for half of their time or more, loading included, and none is
    trained."""
    phases: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in rows:
        for frame in set(one.frames):
            phases[frame][one.phase] += one.seconds
    return frozenset(
        frame
        for frame, spent in phases.items()
        if spent["eval"] > 0
        and not _CHECKS.search(frame)
        and sum(spent[p] for p in _TRAINS) <= _HARDLY * (whole := sum(spent.values()))
        and sum(spent[p] for p in _OF_EVALUATION) >= _MOSTLY * whole
    )
