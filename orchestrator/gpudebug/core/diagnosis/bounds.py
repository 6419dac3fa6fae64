"""The most of the time that fixing a cause can take away: what its ceiling stands on.

Which cause it is is judged by the time that only it explains; a fix can reach further, into the rest of the
function, the backward pass of what the forward pass does no more, and work of loaders behind a wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gpudebug.core.catalogue.model import Cause, Share
from gpudebug.core.diagnosis.host_code import PLACED, loops_of
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import figure, number, stack_term, stacks_of
from gpudebug.core.inside.stacks.shares import SampledStack, seen
from gpudebug.core.records import Stacks

_PHASES = ("data_wait_share", "forward_share", "backward_share", "optimizer_share", "eval_share")
"""Shares of a step that have nothing in common, so that their sum is one, too."""
_BOUNDLESS = frozenset({"device_time_share"})
"""What a kernel can do faster nothing here says."""
_MAINLY = 0.4
"""Of a function's time, from which all of it is taken for what the cause is about (a judgement)."""
_FULL = 0.9
"""Of the cores: beyond it what loader workers compute slows the training down, not only where it waits for
them (a judgement)."""


def most_exposed(cause: Cause, facts: DiagnosisFacts) -> float | None:
    """Return it as a share, 0 to 1; None if it is unknown."""
    training = [t for t in cause.exposed if _of_stack(t) and stacks_of(t, facts) and t.within is None]
    others = [t for t in cause.exposed if t not in training and t.signal not in _PHASES + tuple(_BOUNDLESS)]
    found = [share for term in others if (share := _share(term, facts)) is not None]
    phases = {
        t.signal: v for t in cause.exposed if t.signal in _PHASES and (v := _share(t, facts)) is not None
    }
    if phases:
        found.append(sum(phases.values()))
    if training and facts.stacks is not None and facts.stacks.training is not None:
        found.append(_reach(training, facts.stacks.training, facts))
    if cause.asks_for is not None:
        found = [min(share, _takeable(facts)) for share in found]
    return min(1.0, max(0.0, *found)) if found else None


def _takeable(facts: DiagnosisFacts) -> float:
    """Return the share of the time that ends where loading is spread over all cores of the process."""
    training, cores = facts.stacks.training if facts.stacks else None, number(facts.signals.get("cores"))
    if training is None or not cores or training.seconds <= 0 or training.cpu_s <= 0:
        return 1.0
    loads = sum(one.within("running") for one in seen(training) if one.phase == "data")
    computes = max(0.0, 1.0 - (training.starved_s or 0.0) / training.cpu_s)
    return 1.0 - min(1.0, loads * computes / training.seconds / cores)


def _of_stack(term: Share) -> bool:
    return term.stack is not None or term.code is not None


def _share(term: Share, facts: DiagnosisFacts) -> float | None:
    """Return a term's figure, no more than what it is a part of; of a place all that it takes: what grows
    there can go as a whole.

    A wait for workers that are quicker by a share of their time ends at most by that share of the step.
    """
    found = figure(term, facts)
    value = number(found.value) if found is not None else None
    if value is not None and term.signal in facts.places:
        return max(value, number(facts.signals.get(PLACED)) or 0.0)
    if value is None or term.within is None:
        return value
    if term.of == "workers" and (number(facts.signals.get("cores_busy_share")) or 0.0) >= _FULL:
        return value
    within = number(facts.signals.get(term.within))
    return None if within is None else min(value, within)


def _reach(terms: Iterable[Share], stacks: Stacks, facts: DiagnosisFacts) -> float:
    """Return the share of stacks that count, of all below functions that are mainly such, and of their
    backward pass."""
    rows = seen(stacks)
    if stacks.seconds <= 0:
        return 0.0
    counted: dict[SampledStack, float] = {}
    for term in terms:
        for one, seconds in stack_term(term).counts(stacks):
            counted[one] = max(seconds, counted.get(one, 0.0))
    whole = _functions(counted, rows)
    taken = {one: one.seconds for one in rows if not whole.isdisjoint(one.frames)}
    reached = {**counted, **taken}
    forward = sum(seconds for one, seconds in reached.items() if one.phase == "forward")
    return (sum(reached.values()) + forward * _backward(facts)) / stacks.seconds


def _functions(counted: dict[SampledStack, float], rows: Iterable[SampledStack]) -> frozenset[str]:
    """Return the program's functions that are mainly what `counted` is; without those that hold the loop."""
    own: defaultdict[str, float] = defaultdict(float)
    for one, seconds in counted.items():
        if one.own is not None:
            own[one.frames[one.own]] += seconds
    below: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for frame in own.keys() & set(row.frames):
            below[frame] += row.seconds
    loops = loops_of(tuple(rows))
    return frozenset(f for f, seconds in own.items() if f not in loops and seconds >= _MAINLY * below[f])


def _backward(facts: DiagnosisFacts) -> float:
    """Return the seconds of the backward pass for each of the forward pass."""
    forward, backward = (number(facts.signals.get(f"{name}_share")) for name in ("forward", "backward"))
    return backward / forward if forward and backward else 0.0
