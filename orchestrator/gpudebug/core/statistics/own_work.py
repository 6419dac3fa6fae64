"""What the training process computes beside its model, which the CPU stand-in for a GPU counts as busy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudebug.core.statistics.across import reader

LARGE = 0.2
"""From this share of the time on less of it would bring 1.25x (a judgement, as the diagnosis makes it)."""
_CPU = "CPU"
_MODEL = frozenset({"forward", "backward"})
_BESIDE = {"data": "making batches", "env": "stepping environments", "other": "in code of its own"}


def own_work(stacks: Any) -> dict[str, float] | None:
    """By phase, of those that are not the model's, the share of the time (0 to 1) in which the thread runs;
    `stacks` is a record `Stacks` or its JSON. None where no phase of a model was seen."""
    get = reader(stacks)
    rows, seconds = get("stacks") or (), get("seconds") or 0.0
    if seconds <= 0 or not {row[0] for row in rows} >= _MODEL:
        return None
    found = dict.fromkeys(_BESIDE, 0.0)
    for phase, _, _, lasted, ran in rows:
        if phase in found:
            found[phase] += min(lasted, ran) / seconds
    return found


def counted_as_busy(evidence: Sequence[Any]) -> str | None:
    """What utilisation of the CPU stand-in counts as busy in runs and is none of the model's work, if that is
    much; None if it is little or unknown, or no stand-in was measured. Runs are evidence or its JSON."""
    found = [shares for e in evidence if _stands_in(e) and (shares := _of_training(e)) is not None]
    if not found or len(found) < len(evidence):
        return None
    mean = {phase: sum(shares[phase] for shares in found) / len(found) for phase in _BESIDE}
    whole, most = sum(mean.values()), max(mean, key=lambda phase: mean[phase])
    if whole < LARGE:
        return None
    return (
        f"the training process itself computes {whole:.0%} of the time outside its model, most of it "
        f"{_BESIDE[most]}, and the CPU stand-in counts that as busy"
    )


def _stands_in(e: Any) -> bool:
    devices = reader(e)("devices") or ()
    return bool(devices) and all(reader(d)("uuid") == _CPU for d in devices)


def _of_training(e: Any) -> dict[str, float] | None:
    stacks = reader(e)("stacks")
    training = reader(stacks)("training") if stacks else None
    return own_work(training) if training else None
