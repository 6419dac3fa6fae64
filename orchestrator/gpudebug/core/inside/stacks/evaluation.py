"""The time that a thread spends on evaluation, by what it does there: not by what functions are called."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from gpudebug.core.inside.stacks.patterns import pattern
from gpudebug.core.inside.stacks.shares import CodeLine, SampledStack, Taken, seen
from gpudebug.core.records import Stacks

_TRAINS = ("backward", "optimizer", "forward")
_OF_EVALUATION = ("data", "env")
_ACTS = ("eval", "act")
_HARDLY = 0.02
"""Of a function's time what samples at its edges may put into the wrong phase."""
_MOSTLY, _PARTLY = 0.5, 0.2
"""Of a function's time; the smaller one where its name says that it evaluates."""
_CHECKS = re.compile(r"(?:^|/)distributions/\w+\.py:")
"""PyTorch's distributions: they validate what they are given, within a forward."""
_NEARLY_ALL = 0.9


def evaluation(stacks: Stacks, named: str | None = None) -> Taken:
    """Return the share of the watched time that evaluation takes, and the function that most of it is in.

    That is forwards in evaluation mode without gradients, and all else that is done in a function which
    makes such forwards, fetches batches for them, and never trains. `named`: only functions in whose name
    this expression is found.
    """
    rows = seen(stacks)
    if stacks.seconds <= 0 or not any(one.phase in _ACTS for one in rows):
        return Taken(0.0)
    evaluates = _functions(rows, _MOSTLY, ("eval",)) if named is None else evaluating(stacks, named)
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


def evaluating(stacks: Stacks, named: str) -> frozenset[str]:
    """Return the functions that evaluate and in whose name this expression is found: where a policy acts
    without gradients in rollouts, too, a name is asked for as well."""
    search = pattern(named).search
    return frozenset(frame for frame in _functions(seen(stacks), _PARTLY, _ACTS) if search(frame))


def _functions(rows: tuple[SampledStack, ...], least: float, by: tuple[str, ...]) -> frozenset[str]:
    """Return those in which a network is evaluated, in a phase of `by`, for so much of their time or more,
    loading and environments included, and none is trained. Of the innermost one that both makes the forwards
    and fetches their batches a fifth will do: what else such a loop does, metrics and callbacks, is
    evaluation too."""
    phases: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    within: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in rows:
        for at, frame in enumerate(one.frames):
            # What calls itself counts once.
            if frame in one.frames[:at]:
                continue
            phases[frame][one.phase] += one.seconds
            if one.phase in (*_OF_EVALUATION, *by):
                for inner in set(one.frames[at + 1 :]) - {frame}:
                    within[frame][inner] += one.seconds
    return frozenset(
        frame
        for frame, spent in phases.items()
        if any(spent[phase] > 0 for phase in by)
        and not _CHECKS.search(frame)
        and sum(spent[p] for p in _TRAINS) <= _HARDLY * (whole := sum(spent.values()))
        and _evaluating(spent, by) >= (_PARTLY if _joins(spent, within[frame], by) else least) * whole
    )


def _evaluating(spent: Mapping[str, float], by: tuple[str, ...]) -> float:
    return sum(spent[phase] for phase in (*_OF_EVALUATION, *by))


def _joins(spent: Mapping[str, float], inner: Mapping[str, float], by: tuple[str, ...]) -> bool:
    """Tell whether a function evaluates and loads, and none that it calls does both."""
    both = spent["data"] > 0 and any(spent[phase] > 0 for phase in by)
    return both and max(inner.values(), default=0.0) < _NEARLY_ALL * _evaluating(spent, by)
