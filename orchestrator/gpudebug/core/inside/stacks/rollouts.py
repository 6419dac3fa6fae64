"""What a thread that learns from rollouts does between its updates and within them, by what is called from
where: not by what functions are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.inside.stacks.evaluation import evaluating
from gpudebug.core.inside.stacks.shares import SampledStack, seen
from gpudebug.core.records import Stacks

_ACTS = ("eval", "act")
_LEARNS = ("forward", "backward", "optimizer")
_UPDATES = ("backward", "optimizer")
_ROOT = 0.97
"""A function with more of the time than this has everything below it: it is no part of the training."""
_HALF = 0.5
_HARDLY = 0.02
"""Of a function's time what samples at its edges may put into the wrong phase."""


class RolloutShares(NamedTuple):
    """Shares (0 to 1) of the watched time, outside of evaluation; None where no stack shows it.

    `act`: a policy chooses actions, in forwards without gradients. `env`: environments are stepped, one at a
    time. `beside`: the largest one of a function of the user's that runs between updates, and neither acts
    nor trains, as for rewards. `batches`: functions that an update calls before it trains, as for samples.
    """

    act: float | None = None
    env: float | None = None
    beside: float | None = None
    batches: float | None = None


def rollout_shares(stacks: Stacks, evaluation: str) -> RolloutShares:
    """Those of a thread; functions that evaluate are found in whose name the expression `evaluation` is."""
    if stacks.seconds <= 0:
        return RolloutShares()
    evaluates = evaluating(stacks, evaluation)
    rows = [one for one in seen(stacks) if evaluates.isdisjoint(one.frames)]
    spent = _spent(rows)
    updates = _updating(rows, spent, stacks.seconds)
    sums: defaultdict[str, float] = defaultdict(float)
    beside: defaultdict[str, float] = defaultdict(float)
    for one in rows:
        if one.phase in _ACTS:
            sums["act"] += one.seconds
        elif one.phase == "env":
            sums["env"] += one.seconds
        elif one.phase == "other" and one.own is not None:
            function = one.frames[one.own]
            if _any(spent[function], (*_LEARNS, *_ACTS)):
                continue
            if not updates.isdisjoint(one.frames):
                sums["batches"] += one.seconds
            elif not one.packaged:
                beside[function] += one.within("running")
    if beside:
        sums["beside"] = max(beside.values())
    return RolloutShares(**{name: min(1.0, value / stacks.seconds) for name, value in sums.items()})


Spent = Mapping[str, Mapping[str, float]]


def _spent(rows: Sequence[SampledStack]) -> Spent:
    """Seconds by function, with all that it calls, and phase."""
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in rows:
        for frame in set(one.frames):
            found[frame][one.phase] += one.seconds
    return found


def _updating(rows: Sequence[SampledStack], spent: Spent, seconds: float) -> frozenset[str]:
    """Functions of updates: something trains in them, most actions are chosen elsewhere, and no environment
    is stepped."""
    acts = sum(one.seconds for one in rows if one.phase in _ACTS)
    found = set()
    for frame, phases in spent.items():
        whole = sum(phases.values())
        acting = sum(phases.get(phase, 0.0) for phase in _ACTS)
        if (
            _any(phases, _UPDATES)
            and whole < _ROOT * seconds
            and (acting < _HALF * acts or not acting)
            and phases.get("env", 0.0) <= _HARDLY * whole
        ):
            found.add(frame)
    return frozenset(found)


def _any(phases: Mapping[str, float], wanted: Sequence[str]) -> bool:
    """Whether more of the time is in these phases than samples at the edges put there."""
    whole = sum(phases.values())
    return sum(phases.get(phase, 0.0) for phase in wanted) > _HARDLY * whole
