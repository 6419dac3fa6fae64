"""The stacks of several runs -> one, and the signals that are read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.inside.stacks import shares
from gpudebug.core.records import Stacks, StacksEvidence
from gpudebug.core.words import SignalValue

_CROWDED = 15.0
"""Percent of the cores that others use: from here on threads that could run are kept waiting for one."""
_COMPUTING = ("forward", "backward", "optimizer")
_LEAST = 0.1
_BUT_DATA = ("forward", "backward", "optimizer", "other")


def together(found: Sequence[Mapping[str, Any] | None]) -> StacksEvidence | None:
    """`Evidence.stacks` of several runs as of one; None if no run has any."""
    records = [StacksEvidence.model_validate(one) for one in found if one]
    if not records:
        return None
    training = [s.training for s in records if s.training and s.training.seconds > 0]
    workers = [s.workers for s in records if s.workers and s.workers.seconds > 0]
    return StacksEvidence(
        training=shares.together(training),
        workers=shares.together(workers),
        notes=tuple(dict.fromkeys(note for s in records for note in s.notes)),
    )


def uncrowded(
    stacks: StacksEvidence | None, foreign_cpu: float | None, *, on_cpu: bool
) -> StacksEvidence | None:
    """The stacks without the time that other programs kept threads off the cores, which is no waiting.

    How much of a core a thread got is what it had while it computed: that is known where the training
    computes `on_cpu`. `foreign_cpu` is what others use, in percent of the cores.
    """
    if stacks is None or stacks.training is None or not on_cpu or (foreign_cpu or 0.0) < _CROWDED:
        return stacks
    part = shares.granted(stacks.training, _COMPUTING)
    if part is None or part >= 1.0:
        return stacks
    part = max(part, _LEAST)
    freed = {name: shares.freed(one, part) for name, one in _threads(stacks).items()}
    return stacks.model_copy(update=freed)


def _threads(stacks: StacksEvidence) -> dict[str, Stacks]:
    named = {"training": stacks.training, "workers": stacks.workers}
    return {name: one for name, one in named.items() if one is not None}


def signals(stacks: StacksEvidence | None) -> dict[str, SignalValue | None]:
    """Shares of the watched time; {} if nothing was watched."""
    found: dict[str, SignalValue | None] = {}
    if stacks and stacks.training:
        found |= _training(stacks.training)
    if stacks and stacks.workers:
        found["worker_running_share"] = _ran(stacks.workers)
    return found


def _ran(stacks: Stacks) -> float:
    return min(1.0, stacks.cpu_s / stacks.seconds)


def _training(stacks: Stacks) -> dict[str, SignalValue | None]:
    outside = [s.within("waiting") for s in shares.seen(stacks) if s.phase in _BUT_DATA]
    return {
        "stacks_s": stacks.seconds,
        "waiting_share": 1.0 - _ran(stacks),
        "waiting_outside_data_share": min(1.0, sum(outside) / stacks.seconds),
        "hot_share": shares.hottest(stacks)[0],
        "hot_python_share": shares.hottest(stacks, state="running")[0],
        "hot_in_forward_share": shares.hottest(stacks, phases=("forward",))[0],
    }
