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
_MOST, _HALF, _MUCH = 0.8, 0.5, 0.3
_COMPUTES = 0.7
"""Of its time a function runs that computes; one that waits for files or others does something else."""
_HARDLY = 0.02
"""Of a function's time what samples at its edges may put into the wrong phase."""


class RolloutShares(NamedTuple):
    """Shares (0 to 1) of the watched time, outside of evaluation; None where no stack shows it.

    `act`: a policy chooses actions, in forwards without gradients and in what the functions around them do
    for it, as sampling from a distribution. `collect`: that, and what a framework does around it. `env`:
    environments are stepped, one at a time. `beside`: the largest one of a function of the user's that runs
    between updates, and neither acts nor trains, as for rewards. `batches`: functions that an update calls
    before it trains, as for samples.
    """

    act: float | None = None
    collect: float | None = None
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
    update, acts = _update(rows, spent), _choosing(spent)
    sums: defaultdict[str, float] = defaultdict(float)
    beside: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in rows:
        if one.phase in _ACTS:
            sums["act"] += one.seconds
        elif one.phase == "env":
            sums["env"] += one.seconds
        elif one.phase == "other" and one.own is not None:
            chooses = next((acts[frame] for frame in one.frames if frame in acts), 0.0)
            if chooses:
                sums["act"] += chooses * one.seconds
            function = one.frames[one.own]
            if one.packaged and not chooses and update is not None and update not in one.frames:
                sums["around"] += one.seconds
            if chooses or _any(spent[function], (*_LEARNS, *_ACTS)):
                continue
            if update in one.frames:
                sums["batches"] += one.seconds
            elif not one.packaged:
                beside[function][0] += one.within("running")
                beside[function][1] += one.seconds
    ran = [running for running, whole in beside.values() if running >= _COMPUTES * whole]
    if ran:
        sums["beside"] = max(ran)
    if "act" in sums:
        sums["collect"] = sums["act"] + sums["around"]
    sums.pop("around", None)
    return RolloutShares(**{name: min(1.0, value / stacks.seconds) for name, value in sums.items()})


Spent = Mapping[str, Mapping[str, float]]


def _spent(rows: Sequence[SampledStack]) -> Spent:
    """Seconds by function, with all that it calls, and phase."""
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in rows:
        for frame in set(one.frames):
            found[frame][one.phase] += one.seconds
    return found


def _choosing(spent: Spent) -> dict[str, float]:
    """Return the functions that do little but have a policy choose actions, each with the part (0 to 1) of
    its time for which it does: an update may call it, too."""
    found = {}
    for frame, phases in spent.items():
        acting = sum(phases.get(phase, 0.0) for phase in _ACTS)
        forwards = acting + phases.get("forward", 0.0)
        else_ = _any(phases, _UPDATES) or _any(phases, ("env",))
        if acting and not else_ and forwards >= _MUCH * sum(phases.values()):
            found[frame] = acting / forwards
    return found


def _update(rows: Sequence[SampledStack], spent: Spent) -> str | None:
    """Return the function of an update: the innermost with most of backward and optimizer; None if
    environments are stepped, or actions chosen, below it, too."""
    sums: defaultdict[str, float] = defaultdict(float)
    for one in rows:
        sums[one.phase] += one.seconds
    within = [
        frame
        for frame, phases in spent.items()
        if all(phases.get(phase, 0.0) >= _MOST * sums[phase] > 0 for phase in _UPDATES)
    ]
    if not within:
        return None
    found = min(within, key=lambda frame: sum(spent[frame].values()))
    # A network that is asked for targets acts as well: environments tell more, if their steps are known.
    collecting = ("env",) if sums["env"] else _ACTS
    collects = sum(spent[found].get(phase, 0.0) for phase in collecting)
    return found if collects < _HALF * sum(sums[phase] for phase in collecting) else None


def _any(phases: Mapping[str, float], wanted: Sequence[str]) -> bool:
    """Tell whether more of the time is in these phases than samples at the edges put there."""
    whole = sum(phases.values())
    return sum(phases.get(phase, 0.0) for phase in wanted) > _HARDLY * whole
