"""What was seen of a job from outside -> the signals that the probe gives from inside, as far as they
show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.inside.attached.foreign_frames import OWN_PROCESS, WITH_WORKERS
from gpudebug.core.inside.stacks import shares
from gpudebug.core.records import AttachedEvidence, StacksEvidence
from gpudebug.core.words import SignalValue

_PHASES = {
    "data": "data_wait_share",
    "forward": "forward_share",
    "backward": "backward_share",
    "optimizer": "optimizer_share",
}
_FEW = 20
"""Fewer looks than that show no shares of the time."""


def signals(
    evidence: Sequence[Mapping[str, Any]], stacks: StacksEvidence | None, cores: float | None
) -> dict[str, SignalValue | None]:
    """Signals of a run that was a look at a job; {} for any other, and where the probe reported."""
    records = [AttachedEvidence.model_validate(one) for e in evidence if (one := e.get("attached"))]
    if not records or any(e.get("probe") for e in evidence):
        return {}
    seen = records[-1]
    main = seen.main
    return {
        **phases(stacks),
        **_loader(seen, cores),
        "main_cpu_cores": main.cores if main else None,
        "world_size": float(len(seen.of("rank")) + 1) if seen.of("rank") else None,
    }


def phases(stacks: StacksEvidence | None) -> dict[str, SignalValue | None]:
    """Return the parts of a step by the frames of PyTorch in the stacks, if there are any."""
    training = stacks.training if stacks else None
    if training is None or training.samples < _FEW or training.seconds <= 0:
        return {}
    spent = dict.fromkeys(_PHASES, 0.0)
    for one in shares.seen(training):
        if one.phase in spent:
            spent[one.phase] += one.seconds
    if not any(spent.values()):
        return {}
    found = {name: min(1.0, spent[phase] / training.seconds) for phase, name in _PHASES.items()}
    return {**found, "unattributed_share": max(0.0, 1.0 - sum(found.values()))}


def _loader(seen: AttachedEvidence, cores: float | None) -> dict[str, SignalValue | None]:
    """Return the loader that feeds the training, by the iterator in its stacks and the workers below it."""
    main = seen.main
    workers = float(len(seen.of("worker")))
    if main is None or main.loader not in (OWN_PROCESS, WITH_WORKERS):
        return {"loader_used": True, "loader_workers": workers} if workers else {}
    count = workers if main.loader == WITH_WORKERS else 0.0
    # Workers that are not seen as such (another user's, of an old PyTorch) are no 0.
    if main.loader == WITH_WORKERS and not workers:
        return {"loader_used": True}
    return {
        "loader_used": True,
        "loader_workers": count,
        "loader_workers_over_cores": count / cores if cores else None,
    }
